# CUMULUS_CUDA: AUTO builds the CUDA backend where nvcc is found; ON insists; OFF leaves it out.
set(CUMULUS_CUDA AUTO CACHE STRING "CUDA backend: AUTO, ON or OFF")
set_property(CACHE CUMULUS_CUDA PROPERTY STRINGS AUTO ON OFF)
# 90 carries PTX too, so that newer GPUs run it.
set(CUMULUS_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90" CACHE STRING "CUDA architectures")

set(CUMULUS_WITH_CUDA OFF)
if(NOT CUMULUS_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  set(CMAKE_CUDA_ARCHITECTURES ${CUMULUS_CUDA_ARCHITECTURES})
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    # For projects that ask for 3.25, Debian 12's CMake calls nvToolsExt deprecated, and fails where the toolkit has no
    # nvToolsExt any more (CUDA 12.9 and later).
    set(_minimum ${CMAKE_MINIMUM_REQUIRED_VERSION})
    set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_MINIMUM_REQUIRED_VERSION ${_minimum})
    set(CUMULUS_WITH_CUDA ON)
  elseif(CUMULUS_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CUMULUS_CUDA is ON and no nvcc was found: install the CUDA Toolkit or set CMAKE_CUDA_COMPILER")
  endif()
endif()

if(CUMULUS_WITH_CUDA)
  message(STATUS "Cumulus: CPU and CUDA backends (CUDA ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CUMULUS_CUDA_ARCHITECTURES})")
elseif(CUMULUS_CUDA STREQUAL "OFF")
  message(STATUS "Cumulus: CPU backend only (CUMULUS_CUDA is OFF)")
else()
  message(STATUS "Cumulus: CPU backend only (no nvcc)")
endif()
