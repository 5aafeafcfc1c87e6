# cmake --install: the program, the plugin, the library for C, man pages, completions, the units of systemd, and, for other
# CMake projects, the libraries of the rooms with a package for find_package().
include(CMakePackageConfigHelpers)

install(TARGETS slipstream RUNTIME COMPONENT runtime)
install(TARGETS ggml-turbo ggml-cpu-turbo
  LIBRARY DESTINATION ${SLIPSTREAM_PLUGIN_DIR} COMPONENT runtime)
if(TARGET slipstream_bindings)
  install(TARGETS slipstream_bindings LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  install(FILES src/bindings/slipstream.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT runtime)
endif()
install(FILES packaging/systemd/slipstream.service packaging/systemd/slipstream-rpc.service
  DESTINATION lib/systemd/system COMPONENT runtime)

install(TARGETS slipstream_base EXPORT slipstream-targets
  ARCHIVE COMPONENT development
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/slipstream COMPONENT development)
install(EXPORT slipstream-targets NAMESPACE slipstream::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slipstream COMPONENT development)
configure_package_config_file(cmake/slipstream-config.cmake.in slipstream-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slipstream)
write_basic_package_version_file(slipstream-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/slipstream-config.cmake
  ${PROJECT_BINARY_DIR}/slipstream-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slipstream COMPONENT development)

# Man pages and completions are made from what the program's own --help says, where it can be run and
# is what is shipped.
if(NOT CMAKE_CROSSCOMPILING AND NOT SLIPSTREAM_SANITIZE)
  find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
  set(pages ${PROJECT_BINARY_DIR}/help_pages)
  file(GLOB prose CONFIGURE_DEPENDS packaging/man/*.mdoc)
  file(GLOB generator CONFIGURE_DEPENDS tools/help_pages/*.py)
  add_custom_command(OUTPUT ${pages}.made
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE}
      ${PROJECT_SOURCE_DIR}/tools/help_pages $<TARGET_FILE:slipstream>
      ${PROJECT_SOURCE_DIR}/packaging/man ${pages}
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}.made
    DEPENDS slipstream ${prose} ${generator}
    COMMENT "Making man pages and completions"
    VERBATIM)
  add_custom_target(help_pages ALL DEPENDS ${pages}.made)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT runtime)
  install(FILES ${pages}/completions/slipstream.bash RENAME slipstream
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
  install(FILES ${pages}/completions/_slipstream
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT runtime)
  install(FILES ${pages}/completions/slipstream.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
endif()
