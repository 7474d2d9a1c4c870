# cmake --install: the programs, the client library with its headers, the wire contract, and the CMake package Cumulus.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Cumulus)

install(TARGETS cumulus RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command_line)
install(TARGETS cumulusd cumulus_health RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)

# What the command line tells of itself: completions, where the shells look for them, and its manual page.
set(_documents ${PROJECT_BINARY_DIR}/documents)
install(FILES ${_documents}/cumulus.bash RENAME cumulus
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command_line)
install(FILES ${_documents}/cumulus.zsh RENAME _cumulus
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT command_line)
install(FILES ${_documents}/cumulus.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command_line)
install(FILES ${_documents}/cumulus.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command_line)

# The unit names the program where it is installed, which is known only then.
install(CODE "
  file(READ \"${PROJECT_SOURCE_DIR}/packaging/cumulusd.service.in\" _unit)
  string(REPLACE \"@PREFIX@\" \"\${CMAKE_INSTALL_PREFIX}\" _unit \"\${_unit}\")
  file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/cumulusd.service\" \"\${_unit}\")"
  COMPONENT server)

# cumulus/sampling.h and cumulus/table_file.h alone: `cmake --install BUILD --component sampling` needs nothing built.
set_target_properties(cumulus_sampling PROPERTIES EXPORT_NAME sampling)
install(TARGETS cumulus_sampling EXPORT CumulusSamplingTargets COMPONENT sampling
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY kernels/sampling_table/include/cumulus
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sampling FILES_MATCHING PATTERN "*.h")
install(EXPORT CumulusSamplingTargets NAMESPACE Cumulus:: DESTINATION ${_package_dir} COMPONENT sampling)

# The library for C: programs need it where they run, and its link and header only where they are built.
set_target_properties(cumulus_c PROPERTIES EXPORT_NAME c)
install(TARGETS cumulus_c EXPORT CumulusCTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c_library NAMELINK_COMPONENT client
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT CumulusCTargets NAMESPACE Cumulus:: DESTINATION ${_package_dir} COMPONENT client)

set_target_properties(cumulus_client PROPERTIES EXPORT_NAME client)
set_target_properties(cumulus_proto PROPERTIES EXPORT_NAME proto)
set(_client_libraries cumulus_client cumulus_proto)
if(TARGET cumulus_device_sharing)
  set_target_properties(cumulus_device_sharing PROPERTIES EXPORT_NAME device_sharing)
  list(APPEND _client_libraries cumulus_device_sharing)
endif()
install(TARGETS ${_client_libraries} EXPORT CumulusTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY client/include/cumulus
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT client FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/generated/cumulus/v1
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cumulus COMPONENT client FILES_MATCHING PATTERN "*.pb.h")

install(DIRECTORY proto/cumulus DESTINATION ${CMAKE_INSTALL_DATADIR}/cumulus/proto COMPONENT development FILES_MATCHING PATTERN "*.proto")
install(DIRECTORY config/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cumulus/config COMPONENT server FILES_MATCHING PATTERN "*.textproto")

install(EXPORT CumulusTargets NAMESPACE Cumulus:: DESTINATION ${_package_dir} COMPONENT client)
configure_package_config_file(cmake/CumulusConfig.cmake.in ${PROJECT_BINARY_DIR}/CumulusConfig.cmake
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/CumulusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/CumulusConfig.cmake ${PROJECT_BINARY_DIR}/CumulusConfigVersion.cmake cmake/cumulus-config.cmake
  DESTINATION ${_package_dir} COMPONENT sampling)
install(FILES ${PROJECT_BINARY_DIR}/CumulusConfigVersion.cmake RENAME cumulus-config-version.cmake
  DESTINATION ${_package_dir} COMPONENT sampling)
