# Writes down which programs scripts/bundle takes along: a line each, the folder in the bundle and the program.
get_property(_tests GLOBAL PROPERTY CUMULUS_TEST_PROGRAMS)

set(_lines "bin $<TARGET_FILE:cumulus>\nbin $<TARGET_FILE:cumulusd>\n")
foreach(_program IN LISTS _tests)
  string(APPEND _lines "tests $<TARGET_FILE:${_program}>\n")
endforeach()
if(CUMULUS_BENCH)
  foreach(_program IN ITEMS cumulus_bench cumulus_video_bench)
    string(APPEND _lines "bench $<TARGET_FILE:${_program}>\n")
  endforeach()
endif()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/bundle_programs.txt CONTENT "${_lines}")
