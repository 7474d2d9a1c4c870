#!/bin/sh
# Runs the cumulus commands that README shows under "On the command line", as they stand there.
#   run_commands.sh README PROGRAMS DATA
set -eu
readme=$1 programs=$2 data=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^## / {inside = /On the command line/} inside && /^cumulus /' "$readme" >"$folder/commands"
count=$(wc -l <"$folder/commands")
[ "$count" -gt 0 ] || { echo "README shows no commands"; exit 1; }
cp "$data/sunrise.exr" "$folder/"
cd "$folder"
PATH="$programs:$PATH"
export PATH
unset CUMULUS_SERVER
cat commands
sh -eu commands
for file in sunrise.cst samples.npy preview.png blurred.exr; do
  [ -s "$file" ] || { echo "the commands wrote no $file"; exit 1; }
done
echo "$count commands of README ran"
