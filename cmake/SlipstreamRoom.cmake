# How every target of the project is built: one place for language level, warnings and sanitizers.

# Linked PRIVATE by each target of ours, so that no flag reaches a user of the installed libraries.
add_library(slipstream_build_flags INTERFACE)
target_compile_features(slipstream_build_flags INTERFACE cxx_std_23)
if(SLIPSTREAM_DEVELOPER_MODE)
  target_compile_options(slipstream_build_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Werror
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
endif()
if(SLIPSTREAM_SANITIZE)
  target_compile_options(slipstream_build_flags INTERFACE
    -fsanitize=${SLIPSTREAM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(slipstream_build_flags INTERFACE -fsanitize=${SLIPSTREAM_SANITIZE})
  # With sanitizers g++ warns of libstdc++'s own std::regex, as its manual says it may.
  target_compile_options(slipstream_build_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(SLIPSTREAM_FUZZ)
  target_compile_options(slipstream_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# slipstream_room(NAME): a static library slipstream::NAME. The room's CMakeLists.txt lists its
# sources, its headers (a FILE_SET) and what it links, PUBLIC where a header needs it.
function(slipstream_room name)
  add_library(slipstream_${name} STATIC)
  add_library(slipstream::${name} ALIAS slipstream_${name})
  set_target_properties(slipstream_${name} PROPERTIES
    EXPORT_NAME ${name}
    POSITION_INDEPENDENT_CODE ON
    VERIFY_INTERFACE_HEADER_SETS ON)
  target_compile_features(slipstream_${name} PUBLIC cxx_std_23)
  target_link_libraries(slipstream_${name} PRIVATE $<BUILD_INTERFACE:slipstream_build_flags>)
endfunction()

# slipstream_program(TARGET SOURCES...): an executable of ours, tests and tools included.
function(slipstream_program target)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:slipstream_build_flags>)
endfunction()

# slipstream_unit_test(TARGET SOURCES file... LINK library...): GoogleTest cases, each one a ctest
# with label "unit"; under emulation one ctest, for starting the program takes longer there than most
# cases do. Nothing where tests are not built.
function(slipstream_unit_test target)
  if(NOT SLIPSTREAM_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "SOURCES;LINK")
  find_package(GTest CONFIG REQUIRED)
  include(GoogleTest)
  slipstream_program(${target} ${test_SOURCES})
  target_link_libraries(${target} PRIVATE ${test_LINK} GTest::gmock GTest::gtest_main)
  if(CMAKE_CROSSCOMPILING)
    add_test(NAME ${target} COMMAND ${target})
    set_tests_properties(${target} PROPERTIES LABELS unit TIMEOUT 300)
  else()
    gtest_discover_tests(${target} PROPERTIES LABELS unit TIMEOUT 60)
  endif()
endfunction()
