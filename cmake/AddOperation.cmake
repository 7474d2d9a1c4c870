# add_operation(stem): the one place where an operation enters the build. It stands for the files
#   proto/cumulus/v1/<stem>.proto
#   kernels/<stem>/: every .cc and, with CUDA, every .cu in it and in its folders
#   server/operations/<stem>/: every .cc
#   client/cli/commands/<stem>/: every .cc
#   tests/kernels/<stem>_test.cc, tests/service/<stem>_test.cc
#   bench/operations/<stem>.cc
# The folders' own CMakeLists.txt go through CUMULUS_OPERATIONS and take theirs.
set(CUMULUS_OPERATIONS "")

macro(add_operation stem)
  list(APPEND CUMULUS_OPERATIONS ${stem})
endmacro()
