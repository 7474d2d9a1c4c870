# Makes OUTPUT from commit.h.in with the commit of SOURCE. Runs at build time; touches the file only when it changes.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --exclude "*" --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/commit.h.in ${OUTPUT} @ONLY)
