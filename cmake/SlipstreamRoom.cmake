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
if(CMAKE_UNITY_BUILD)  # g++ warns of coroutines whose frames hold what a file keeps to itself
  target_compile_options(slipstream_build_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(SLIPSTREAM_FUZZ)
  target_compile_options(slipstream_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# With CMAKE_UNITY_BUILD the files of one folder are compiled together: their headers are read, and
# their templates instantiated, once. Batches by number would let a new file move all the others.
function(slipstream_compile_folders_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "folder_${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()

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
  # At the end of the room's CMakeLists.txt, when its sources are known.
  cmake_language(EVAL CODE
    "cmake_language(DEFER CALL slipstream_compile_folders_together slipstream_${name})")
endfunction()

# slipstream_program(TARGET SOURCES...): an executable of ours, tests and tools included.
function(slipstream_program target)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:slipstream_build_flags>)
  slipstream_compile_folders_together(${target})
endfunction()

# What the gate tests with sanitizers: unit tests, and the fuzz targets on their corpora. Once is enough: the
# release build makes them, and runs them, at night.
if(SLIPSTREAM_TESTS)
  add_custom_target(unit_tests)
endif()
function(slipstream_add_to_unit_tests target label result)
  add_dependencies(unit_tests ${target})
  if(NOT SLIPSTREAM_SANITIZE)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    set(label nightly)
  endif()
  set(${result} ${label} PARENT_SCOPE)
endfunction()

# slipstream_unit_test(TARGET [OPTIMISED | SANITIZED_AT_NIGHT] SOURCES file... LINK library...): GoogleTest
# cases of a room, each suite one ctest with label "unit". What has kernels or looks at the clock is OPTIMISED:
# the gate runs it in the release build, too. What is SANITIZED_AT_NIGHT it runs there only. Nothing where tests
# are not built.
function(slipstream_unit_test target)
  if(NOT SLIPSTREAM_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 test "OPTIMISED;SANITIZED_AT_NIGHT" "" "SOURCES;LINK")
  find_package(GTest CONFIG REQUIRED)
  slipstream_program(${target} ${test_SOURCES})
  target_link_libraries(${target} PRIVATE ${test_LINK} GTest::gmock GTest::gtest_main)
  # Optimising the tests themselves takes longer than it saves.
  target_compile_options(${target} PRIVATE -O1)
  set(label unit)
  if(test_OPTIMISED)
    add_dependencies(unit_tests ${target})
  elseif(NOT test_SANITIZED_AT_NIGHT)
    slipstream_add_to_unit_tests(${target} unit label)
  endif()
  if(CMAKE_CROSSCOMPILING)
    add_test(NAME ${target} COMMAND ${target})
    # All tests of the room in one process of the emulator.
    set_tests_properties(${target} PROPERTIES LABELS unit TIMEOUT 3600)
  else()
    slipstream_discover_suites(${target} ${label})
  endif()
endfunction()

# One ctest for each suite, named ROOM.SUITE. One for each case would start two thousand processes: with
# sanitizers a start takes longer than most cases do.
function(slipstream_discover_suites target label)
  string(REGEX REPLACE "_test$" "" room ${target})
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS ${suites}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DROOM=${room} -DLABEL=${label}
      -DOUTPUT=${suites} -P ${PROJECT_SOURCE_DIR}/cmake/discover_suites.cmake
    VERBATIM)
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake)
  file(WRITE ${include} "if(EXISTS [[${suites}]])\n  include([[${suites}]])\nelse()\n"
    "  add_test([[${room}_NOT_BUILT]] [[${target}]])\n"
    "  set_tests_properties([[${room}_NOT_BUILT]] PROPERTIES LABELS nightly)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
