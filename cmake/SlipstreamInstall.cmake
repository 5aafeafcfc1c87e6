# cmake --install: the program, the plugin, the libraries of the rooms, and a package for find_package().
include(CMakePackageConfigHelpers)

install(TARGETS slipstream RUNTIME)
install(TARGETS ggml-turbo ggml-cpu-turbo LIBRARY DESTINATION ${SLIPSTREAM_PLUGIN_DIR})
install(TARGETS slipstream_base EXPORT slipstream-targets ARCHIVE
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/slipstream)
install(EXPORT slipstream-targets NAMESPACE slipstream::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slipstream)
configure_package_config_file(cmake/slipstream-config.cmake.in slipstream-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slipstream)
write_basic_package_version_file(slipstream-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/slipstream-config.cmake
  ${PROJECT_BINARY_DIR}/slipstream-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slipstream)
install(FILES packaging/man/slipstream.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
