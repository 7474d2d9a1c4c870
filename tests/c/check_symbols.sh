#!/bin/sh
# Holds a shared library's symbols against the functions that its headers declare.
#   check_symbols.sh NM LIBRARY HEADER...     prints the difference; exits 1 if there is any
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" -D --defined-only --format=posix "$2" | cut -d ' ' -f 1 | sort >"$folder/shown"
shift 2
grep -h -A 1 CUMULUS_API "$@" | grep -o 'cumulus_[a-z_0-9]*(' | tr -d '(' | sort -u >"$folder/declared"
test -s "$folder/declared"
diff "$folder/declared" "$folder/shown"
