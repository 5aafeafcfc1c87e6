# cmake --build --preset tidy: clang-tidy and clang's own warnings, thread-safety among them, on every file
# that is compiled. No objects are made: compiling each file beside it takes as long again.
if(SLIPSTREAM_TIDY_CHECKS)
  add_custom_target(tidy
    COMMAND run-clang-tidy-22 -clang-tidy-binary ${PROJECT_SOURCE_DIR}/tools/cached-tidy -quiet -p ${PROJECT_BINARY_DIR} -checks=${SLIPSTREAM_TIDY_CHECKS}
      "([.]dir/Unity/.*[.]cxx|[.]cpp)$"  # not those that only include a header
    USES_TERMINAL  # each file is named when it is done
    VERBATIM)
endif()
