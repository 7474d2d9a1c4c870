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
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${_sanitize}>")
  add_link_options(${_sanitize})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What the sanitizers put in between makes GCC see uninitialised values where there are none.
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>")
  else()
    # Which GCC defines itself.
    string(TOUPPER ${CUMULUS_SANITIZE} _name)
    add_compile_definitions("$<$<COMPILE_LANGUAGE:CXX>:__SANITIZE_${_name}__=1>")
  endif()
endif()
