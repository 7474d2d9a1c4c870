# Writes packages of two versions of gRPC, and looks which one a build takes.
#   cmake -D WORK=... -P check.cmake
file(REMOVE_RECURSE ${WORK})

function(write_package prefix version)
  set(_folder ${WORK}/${prefix}/lib/cmake/grpc)
  file(WRITE ${_folder}/gRPCConfig.cmake "")
  file(WRITE ${_folder}/gRPCConfigVersion.cmake
    "set(PACKAGE_VERSION ${version})\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
endfunction()
write_package(distribution 1.51.1)
write_package(newer 1.62.0)

# Configures with what follows `right`.
function(expect right)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build --fresh
      -DDISTRIBUTION=${WORK}/distribution -DRIGHT=${right} ${ARGN}
    RESULT_VARIABLE _status OUTPUT_VARIABLE _output ERROR_VARIABLE _output)
  if(NOT _status EQUAL 0)
    message(FATAL_ERROR "with \"${ARGN}\": ${_output}")
  endif()
endfunction()
unset(ENV{CMAKE_PREFIX_PATH})
expect(1.51.1)
expect(1.62.0 -DCMAKE_PREFIX_PATH=${WORK}/newer)
set(ENV{CMAKE_PREFIX_PATH} ${WORK}/newer)
expect(1.62.0)
