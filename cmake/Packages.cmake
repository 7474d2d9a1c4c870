# cpack -G DEB: Debian's packages of a build. scripts/packages makes them and tries them in a bare root.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cumulus)
set(CPACK_PACKAGE_CONTACT "Cumulus <cumulus@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tables and filters for renderers, on GPUs and CPUs")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION graphics)

set(CPACK_COMPONENTS_ALL server command_line c_library client development sampling)
set(_images)
set(_other_images)
if(CUMULUS_OPENIMAGEIO)
  list(APPEND CPACK_COMPONENTS_ALL images other_images)
  set(_images "cumulus-images (= ${PROJECT_VERSION})")
  set(_other_images cumulus-other-images)
endif()

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME cumulus-server)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS ${_images})
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS ${_other_images})
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
  "${PROJECT_SOURCE_DIR}/packaging/server/postinst;${PROJECT_SOURCE_DIR}/packaging/server/prerm;${PROJECT_SOURCE_DIR}/packaging/server/postrm")
set(CPACK_COMPONENT_SERVER_DESCRIPTION "The daemon, its configurations and its service.")

set(CPACK_DEBIAN_COMMAND_LINE_PACKAGE_NAME cumulus)
set(CPACK_DEBIAN_COMMAND_LINE_PACKAGE_DEPENDS ${_images})
set(CPACK_DEBIAN_COMMAND_LINE_PACKAGE_RECOMMENDS "cumulus-server")
if(_other_images)
  string(APPEND CPACK_DEBIAN_COMMAND_LINE_PACKAGE_RECOMMENDS ", ${_other_images}")
endif()
set(CPACK_COMPONENT_COMMAND_LINE_DESCRIPTION "The command line, with its manual page and its completions.")

set(CPACK_DEBIAN_IMAGES_PACKAGE_NAME cumulus-images)
set(CPACK_COMPONENT_IMAGES_DESCRIPTION "What the daemon and the command line read and write EXR, HDR, PNG and JPEG with.")

set(CPACK_DEBIAN_OTHER_IMAGES_PACKAGE_NAME cumulus-other-images)
set(CPACK_DEBIAN_OTHER_IMAGES_PACKAGE_DEPENDS ${_images})
set(CPACK_COMPONENT_OTHER_IMAGES_DESCRIPTION "The other formats, by OpenImageIO.")

set(CPACK_DEBIAN_C_LIBRARY_PACKAGE_NAME libcumulus${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_C_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_C_LIBRARY_DESCRIPTION "The client library for C, as programs load it.")

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libcumulus-client-dev)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS
  "cumulus-sampling-dev (= ${PROJECT_VERSION}), libcumulus${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}), libgrpc++-dev, protobuf-compiler-grpc, libprotobuf-dev, libssl-dev, libabsl-dev, libisal-dev, pkg-config")
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "The client library in C++, static, and that for C, with their headers and their CMake package.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME cumulus-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libcumulus-client-dev (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "All to write clients with: the library, and the wire contract for other languages.")

set(CPACK_DEBIAN_SAMPLING_PACKAGE_NAME cumulus-sampling-dev)
set(CPACK_DEBIAN_SAMPLING_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_SAMPLING_DESCRIPTION "Headers without dependencies that draw samples from tables.")

include(CPack)
