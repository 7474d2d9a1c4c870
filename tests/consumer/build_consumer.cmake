# Installs BUILD into a folder of its own, and builds and runs the consumer against that.
#   cmake -D BUILD=... -D SOURCE=... -D WORK=... -D CC=... -D CXX=... -D IMAGE=... -P build_consumer.cmake
# IMAGE is an image file that the installed command line reads; empty where it reads none.
file(REMOVE_RECURSE ${WORK})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGV}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
file(GLOB_RECURSE installed ${WORK}/prefix/*)
set(installed_bytes 0)
foreach(file IN LISTS installed)
  if(NOT IS_SYMLINK ${file})
    file(SIZE ${file} bytes)
    math(EXPR installed_bytes "${installed_bytes} + ${bytes}")
  endif()
endforeach()
message(STATUS "installed: ${installed_bytes} bytes")
if(installed_bytes GREATER 80000000)
  message(FATAL_ERROR "an installation takes ${installed_bytes} bytes; at most 80 MB are right")
endif()
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)

# The library for C, where there is no C++ compiler.
run(${CMAKE_COMMAND} -S ${SOURCE}/c -B ${WORK}/plugin -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${CC}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/plugin)
run(${WORK}/plugin/plugin)

foreach(program cumulus cumulusd)
  run(${WORK}/prefix/bin/${program} --help)
endforeach()
set(table)
if(IMAGE)
  set(table ${WORK}/table.cst)
  run(${WORK}/prefix/bin/cumulus --backend cpu sampling-table ${IMAGE} -o ${table})
endif()

# The headers of cumulus/sampling.h by themselves, which a renderer takes without building anything of Cumulus.
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/headers --component sampling)
run(${CMAKE_COMMAND} -S ${SOURCE}/sampling -B ${WORK}/renderer -G Ninja -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/headers)
run(${CMAKE_COMMAND} --build ${WORK}/renderer)
run(${WORK}/renderer/renderer ${table})
