# Link this privately into every target of ours, never into generated code.
option(CUMULUS_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" OFF)

add_library(cumulus_warnings INTERFACE)
set(_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
set(_cuda_flags -Wall,-Wextra,-Wshadow)
if(CUMULUS_WARNINGS_AS_ERRORS)
  list(APPEND _flags -Werror)
  string(APPEND _cuda_flags ",-Werror")
endif()
target_compile_options(cumulus_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${_flags}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${_cuda_flags}>"
  "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${CUMULUS_WARNINGS_AS_ERRORS}>>:-Werror=all-warnings>")
