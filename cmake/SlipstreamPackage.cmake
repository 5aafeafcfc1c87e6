# cpack: slipstream.deb, of what is needed to run the program (component runtime) and the files of Debian
# (component debian, which cmake --install leaves out: it goes to /etc whatever the prefix is).
install(FILES packaging/systemd/slipstream.env DESTINATION /etc/slipstream
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ  # it may hold a key
  COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES LICENSE RENAME copyright
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/slipstream COMPONENT debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime debian)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME slipstream)
set(CPACK_PACKAGE_CONTACT "The Slipstream maintainers")
set(CPACK_DEBIAN_PACKAGE_NAME slipstream)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The plugin refuses a ggml that it was not built with.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
  "libggml0 (>= ${ggml_VERSION}), libggml0 (<< ${ggml_VERSION}.0)")
# What the index asks about symbols, and for the text of documents.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "bubblewrap, docx2txt, odt2txt, poppler-utils, universal-ctags")
# The stock programs that the plugin serves as well.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS llama.cpp-tools)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${debian}/conffiles ${debian}/postinst ${debian}/postrm ${debian}/prerm)
include(CPack)
