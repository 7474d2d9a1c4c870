# CUMULUS_SANITIZE: "" | address (with undefined) | thread. Applies to everything in the tree.
set(CUMULUS_SANITIZE "" CACHE STRING "Sanitizer: empty, address or thread")
set_property(CACHE CUMULUS_SANITIZE PROPERTY STRINGS "" address thread)

if(CUMULUS_SANITIZE STREQUAL "address")
  set(_sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
elseif(CUMULUS_SANITIZE STREQUAL "thread")
  set(_sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT CUMULUS_SANITIZE STREQUAL "")
  message(FATAL_ERROR "CUMULUS_SANITIZE is '${CUMULUS_SANITIZE}'; it can be empty, address or thread")
endif()
if(_sanitize)
  # What the sanitizers put in between makes GCC see uninitialised values where there are none.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${_sanitize};-Wno-maybe-uninitialized>")
  add_link_options(${_sanitize})
endif()

# join_sources(TARGET...): compiles a few of the target's files as one, which takes half the time, as most of it goes
# into headers. What ships is joined in sanitized builds only: the others compile each file alone, so that each includes
# what it uses. Within such a target, what stands in unnamed namespaces needs names of its own.
function(join_sources)
  if(NOT CUMULUS_SANITIZE STREQUAL "")
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

if(CUMULUS_SANITIZE STREQUAL "")
  set(_join_tests OFF)
else()
  set(_join_tests ON)
endif()
option(CUMULUS_JOIN_TESTS "Compile a few of a test program's files as one: for whole builds, as in CI" ${_join_tests})
