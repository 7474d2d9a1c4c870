# cmake --install: the programs, the client library with its headers, the wire contract, and the CMake package Cumulus.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Cumulus)

install(TARGETS cumulus cumulusd cumulus_health RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# cumulus/sampling.h and cumulus/table_file.h alone: `cmake --install BUILD --component sampling` needs nothing built.
set_target_properties(cumulus_sampling PROPERTIES EXPORT_NAME sampling)
install(TARGETS cumulus_sampling EXPORT CumulusSamplingTargets COMPONENT sampling
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY kernels/sampling_table/include/cumulus
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sampling FILES_MATCHING PATTERN "*.h")
install(EXPORT CumulusSamplingTargets NAMESPACE Cumulus:: DESTINATION ${_package_dir} COMPONENT sampling)

set_target_properties(cumulus_client PROPERTIES EXPORT_NAME client)
set_target_properties(cumulus_proto PROPERTIES EXPORT_NAME proto)
install(TARGETS cumulus_client cumulus_proto EXPORT CumulusTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY client/include/cumulus
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/generated/cumulus/v1
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cumulus FILES_MATCHING PATTERN "*.pb.h")

install(DIRECTORY proto/cumulus DESTINATION ${CMAKE_INSTALL_DATADIR}/cumulus/proto FILES_MATCHING PATTERN "*.proto")
install(DIRECTORY config/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cumulus/config FILES_MATCHING PATTERN "*.textproto")

install(EXPORT CumulusTargets NAMESPACE Cumulus:: DESTINATION ${_package_dir})
configure_package_config_file(cmake/CumulusConfig.cmake.in ${PROJECT_BINARY_DIR}/CumulusConfig.cmake
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/CumulusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/CumulusConfig.cmake ${PROJECT_BINARY_DIR}/CumulusConfigVersion.cmake
  DESTINATION ${_package_dir} COMPONENT sampling)
