#!/bin/sh
# Compiles the C that a page shows.
#   check_page.sh PAGE CC OPTION...
set -eu
page=$1
shift
sed -n '/^```c$/,/^```$/{/^```/!p}' "$page" | grep . | "$@" -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c -
