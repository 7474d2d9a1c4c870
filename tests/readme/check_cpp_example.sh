#!/bin/sh
# The C++ that README shows is, line for line and in this order, a part of the example that the tests run.
#   check_cpp_example.sh README EXAMPLE
set -eu
exec awk '
NR == FNR {
  if (/^```cpp$/) { inside = 1; next }
  if (/^```$/) inside = 0
  if (inside && $0 != "") shown[++count] = $0
  next
}
$0 == shown[found + 1] { found++ }
END {
  if (count == 0) { print "README shows no C++"; exit 1 }
  if (found < count) { print "not in the example, or in another order: " shown[found + 1]; exit 1 }
  print count " lines of C++ in README are the example'"'"'s"
}' "$1" "$2"
