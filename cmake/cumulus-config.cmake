# find_package(cumulus) finds what find_package(Cumulus) does.
include(CMakeFindDependencyMacro)
set(Cumulus_DIR ${CMAKE_CURRENT_LIST_DIR})
if(cumulus_FIND_COMPONENTS)
  find_dependency(Cumulus CONFIG COMPONENTS ${cumulus_FIND_COMPONENTS})
else()
  find_dependency(Cumulus CONFIG)
endif()
