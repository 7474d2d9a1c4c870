# Writes down what scripts/bundle takes along: a line for each program, and for the modules that they load, with its
# folder in the bundle.
get_property(_tests GLOBAL PROPERTY CUMULUS_TEST_PROGRAMS)

set(_lines "bin $<TARGET_FILE:cumulus>\nbin $<TARGET_FILE:cumulusd>\n")
if(CUMULUS_OPENIMAGEIO)
  string(APPEND _lines "lib/cumulus $<TARGET_FILE:cumulus_image_module>\n"
    "lib/cumulus $<TARGET_FILE:cumulus_other_image_module>\n")
endif()
foreach(_program IN LISTS _tests)
  string(APPEND _lines "tests $<TARGET_FILE:${_program}>\n")
endforeach()
if(CUMULUS_BENCH)
  foreach(_program IN ITEMS cumulus_bench cumulus_video_bench)
    string(APPEND _lines "bench $<TARGET_FILE:${_program}>\n")
  endforeach()
endif()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/bundle_programs.txt CONTENT "${_lines}")
