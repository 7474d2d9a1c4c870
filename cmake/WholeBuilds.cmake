# What makes a build of everything cheaper, and one after a small change dearer: for CI, which starts with nothing. Both hide
# includes that a file lacks, so builds that ask for nothing compile each file alone.
if(CUMULUS_SANITIZE STREQUAL "")
  set(_join OFF)
else()
  set(_join ON)
endif()
option(CUMULUS_JOIN_SOURCES "Compile a few of a library's or test program's files as one; default in sanitized builds" ${_join})
option(CUMULUS_PRECOMPILED_HEADERS "Parse gRPC's headers once a build" OFF)

# What gcc guesses of code that it has inlined, and sees elsewhere where files are joined or the standard library's headers
# come precompiled (gcc's bug 105651): errors in the other builds.
set(_guesses -Wno-error=array-bounds -Wno-error=maybe-uninitialized -Wno-error=restrict -Wno-error=stringop-overflow
  -Wno-error=stringop-overread)

# To clang an alias that two joined files have, the same in both, shadows.
if(CUMULUS_JOIN_SOURCES AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(cumulus_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>)
endif()

function(_keep_guesses_warnings)
  foreach(_target IN LISTS ARGN)
    target_compile_options(${_target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:${_guesses}>")
  endforeach()
endfunction()

# join_sources(TARGET...): takes half the time, as most of it goes into headers. What stands in a target's unnamed
# namespaces needs names of its own.
function(join_sources)
  if(CUMULUS_JOIN_SOURCES)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    _keep_guesses_warnings(${ARGN})
  endif()
endfunction()

# _groups_of(LINES FILE...): "GROUP FILE" of each file, where files of a group, twelve at most, name nothing alike.
function(_groups_of lines)
  execute_process(
    COMMAND ${CUMULUS_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/source_groups.py 12 ${ARGN}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE _lines COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})  # whose names decide
  string(REGEX MATCHALL "[^\n]+" _lines "${_lines}")
  set(${lines} ${_lines} PARENT_SCOPE)
endfunction()

# join_where_names_differ(TARGET FILE...): likewise of files of which some name things alike. Those do not go together.
function(join_where_names_differ target)
  find_program(CUMULUS_PYTHON python3)
  if(NOT CUMULUS_JOIN_SOURCES OR NOT CUMULUS_PYTHON)
    return()
  endif()
  _groups_of(_lines ${ARGN})
  foreach(_line IN LISTS _lines)
    string(REPLACE " " ";" _line "${_line}")
    list(GET _line 0 _group)
    list(GET _line 1 _file)
    set_source_files_properties(${_file} PROPERTIES UNITY_GROUP ${target}_${_group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  _keep_guesses_warnings(${target})
endfunction()

# target_cuda_sources(TARGET FILE...): each alone or, with CUMULUS_JOIN_CUDA_SOURCES, joined where names differ. CMake joins
# CUDA sources by itself from 3.31 on.
option(CUMULUS_JOIN_CUDA_SOURCES "Compile a few of an operation's CUDA files as one" ${CUMULUS_JOIN_SOURCES})
function(target_cuda_sources target)
  find_program(CUMULUS_PYTHON python3)
  if(NOT CUMULUS_JOIN_CUDA_SOURCES OR NOT CUMULUS_PYTHON)
    target_sources(${target} PRIVATE ${ARGN})
    return()
  endif()
  _groups_of(_lines ${ARGN})
  set(_groups)
  foreach(_line IN LISTS _lines)
    string(REPLACE " " ";" _line "${_line}")
    list(GET _line 0 _group)
    list(GET _line 1 _file)
    get_filename_component(_file ${_file} ABSOLUTE)
    list(APPEND _groups ${_group})
    string(APPEND _text_${_group} "#include \"${_file}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES _groups)
  foreach(_group IN LISTS _groups)
    set(_joined ${CMAKE_CURRENT_BINARY_DIR}/${target}_${_group}.cu)
    file(CONFIGURE OUTPUT ${_joined} CONTENT "${_text_${_group}}" @ONLY)
    target_sources(${target} PRIVATE ${_joined})
  endforeach()
endfunction()

set(_service_headers
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/synchronization/mutex.h> <absl/time/clock.h>
  <algorithm> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <span> <string> <thread> <vector>
  <google/rpc/error_details.pb.h> <google/rpc/status.pb.h> <grpcpp/grpcpp.h>
  <cumulus/v1/operations.grpc.pb.h> <cumulus/v1/server.grpc.pb.h> <cumulus/v1/sessions.grpc.pb.h>
  <cumulus/v1/transfer.grpc.pb.h>)

# precompile_headers(OWNER owner TARGETS ... [ALSO header ...]): the owner parses them, and the targets take them from it.
# All are libraries, or all are programs, and all link gRPC: gcc refuses headers that were parsed with other options.
function(precompile_headers)
  if(CUMULUS_PRECOMPILED_HEADERS)
    cmake_parse_arguments(P "" "OWNER" "TARGETS;ALSO" ${ARGN})
    _keep_guesses_warnings(${P_OWNER} ${P_TARGETS})
    target_precompile_headers(${P_OWNER} PRIVATE ${_service_headers} ${P_ALSO})
    foreach(_target IN LISTS P_TARGETS)
      target_precompile_headers(${_target} REUSE_FROM ${P_OWNER})
    endforeach()
  endif()
endfunction()
