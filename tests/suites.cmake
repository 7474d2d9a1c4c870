# Writes FILE for ctest: a test for each suite of PROGRAM, of the tests that LEFT_OUT does not match, all in one process.
#
#   cmake -D PROGRAM=... -D LEFT_OUT=PATTERNS -D LABEL=... -D FILE=... -P suites.cmake
execute_process(COMMAND ${PROGRAM} --gtest_list_tests "--gtest_filter=-${LEFT_OUT}" OUTPUT_VARIABLE _listed
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\." _suites "\n${_listed}")
if(_suites STREQUAL "")
  message(FATAL_ERROR "${PROGRAM} has no tests but ${LEFT_OUT}")
endif()
set(_text "")
foreach(_suite IN LISTS _suites)
  string(REGEX REPLACE "^\n|\\.$" "" _suite "${_suite}")
  string(APPEND _text "add_test([=[${_suite}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${_suite}.*-${LEFT_OUT}]=])\n"
    "set_tests_properties([=[${_suite}]=] PROPERTIES LABELS ${LABEL} TIMEOUT 300 COST 20)\n")
endforeach()
file(WRITE ${FILE} "${_text}")
