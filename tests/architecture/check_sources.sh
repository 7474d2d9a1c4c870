#!/bin/sh
# Holds docs/architecture.md's "Who may include whom", the limit on a file's length, and docs/glossary.md's words in
# kernels/: it refuses the words that the code once had for the same things.
#   check_sources.sh ROOT        prints each violation as PATH:LINE: TEXT; exits 1 if there is any
set -eu
cd "$1"

# Folders that a checkout lacks are no error; a checkout without any source is.
sources=$(find kernels proto images server client bench tests examples -type f \
  \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.h.in' \) 2>/dev/null | sort)
if [ -z "$sources" ]; then
  echo "$1: no sources here; give the root of the tree" >&2
  exit 2
fi

# shellcheck disable=SC2086  # no path of ours has a space
exec awk -v stems="$(ls kernels 2>/dev/null | tr '\n' ' ')" '
function violation(text) {
  print FILENAME ":" FNR ": " text
  violations++
}

# The stem of kernels/STEM/..., of server/operations/STEM/..., or of server/operations/STEM.h and STEM_part.h: the longest
# folder of kernels/ that fits.
function stem_of(path, parts, count, list, best, i) {
  split(path, parts, "/")
  if (parts[1] == "kernels") return parts[2]
  sub(/\..*/, "", parts[3])
  count = split(stems, list, " ")
  for (i = 1; i <= count; ++i) {
    if (index(parts[3] "_", list[i] "_") == 1 && length(list[i]) > length(best)) best = list[i]
  }
  return best != "" ? best : parts[3]
}

# What a file may include of the project, as a regular expression over the quoted path.
function allowed_from(path, stem) {
  stem = stem_of(path)
  if (path ~ /^kernels\/core\//) return "^kernels/core/"
  if (path ~ /^kernels\/primitives\//) return "^kernels/(core|primitives)/"
  if (path ~ /^kernels\//) return "^(kernels/(core|primitives|" stem ")/|cumulus/(sampling|cell_search|distribution|radix_forest|bilinear|equal_area|fast_arithmetic|host_device|point_sequences|table_format|table_view)[.]h$)"
  if (path ~ /^proto\//) return "^$"
  if (path ~ /^images\//) return "^images/"
  if (path ~ /^server\/runtime\//) {
    return "^(server/(runtime/|pipeline/(errors|text)[.]h$|version[.]h$)|images/|kernels/core/|cumulus/(v1|config/v1|decoding/v1)/|g(oogle/rpc|rpc/health/v1)/|proto/(brief_look|checksums|cores|metadata|shared_memory|steady_time|unknown_words)[.]h$)"
  }
  if (path ~ /^server\/pipeline\//) return "^(server/(pipeline|runtime)/|kernels/core/|cumulus/v1/|google/rpc/|proto/steady_time[.]h$)"
  if (path ~ /^server\/services\//) return "^(server/(services|pipeline|runtime)/|server/version[.]h$|cumulus/v1/|proto/steady_time[.]h$)"
  if (path ~ /^server\/operations\/operations_service[.]/) return "^(server/(operations|pipeline|runtime)/|cumulus/v1/)"
  if (path ~ /^server\/operations\//) {
    return "^(server/(pipeline/|operations/" stem "(_[a-z_0-9]+)?([.]h$|/))|kernels/(core|" stem ")/|cumulus/v1/(array|" stem ")[.]pb[.]h$)"
  }
  if (path ~ /^server\//) return "^((server|kernels|cumulus)/|proto/process[.]h$)"
  if (path ~ /^client\/cli\//) return "^((cumulus|cli|client/cli|library|images)/|proto/(checksums|process|steady_time|unknown_words)[.]h$)"
  if (path ~ /^client\/include\//) return "^cumulus/[a-z_0-9]+[.]h$"
  if (path ~ /^client\//) return "^((cumulus|library|google/rpc)/|proto/(brief_look|checksums|cores|metadata|shared_memory|steady_time)[.]h$)"
  if (path ~ /^examples\//) return "^cumulus/[a-z_0-9]+[.]h$"
  return "."
}

function check_include(path, quoted) {
  if (quoted && path !~ allowed_from(FILENAME)) {
    violation("may not include \"" path "\"; from here only " allowed_from(FILENAME))
  }
  if (FILENAME !~ /^(tests|bench)\// && path ~ /^tests\//) {
    violation("production code may not include \"" path "\"")
  }
  if (FILENAME ~ /^kernels\// && path ~ /^(grpc|grpcpp|google|spdlog|OpenImageIO)\/|[.]pb[.]h$/) {
    violation("a kernel may not include \"" path "\": gRPC, protobuf, logging and files are the server'"'"'s")
  }
  if (path ~ /^(cuda|cub|thrust|nv|cooperative_groups)(_[a-z_]*)?([.]h$|\/)/ && FILENAME !~ /^(kernels|client\/library\/device_sharing)\// && FILENAME !~ /^(bench|examples|tests)\/.*[.]cu$/) {
    violation("only kernels may include CUDA'"'"'s \"" path "\"")
  }
  if (path ~ /^OpenImageIO\// && FILENAME !~ /^(images|tests)\//) {
    violation("only the image module, in images/, may include \"" path "\"")
  }
}

# Words as a reader sees them: LineTold and line_told have two.
function check_words(text) {
  if (match(text, /k(Most|Least)[A-Z]/)) {
    violation("\"" substr(text, RSTART, RLENGTH - 1) "...\": it is kMax and kMin")
  }
  gsub(/[A-Z]/, " &", text)
  gsub(/[^A-Za-z]+/, " ", text)
  text = " " tolower(text) " "
  if (match(text, / (tells?|told|telling|hears?|heard|adders?|messengers?|patience|futures|slabs?|held tiles?) /)) {
    violation("the word \"" substr(text, RSTART + 1, RLENGTH - 2) "\": docs/glossary.md has another")
  }
}

FNR == 1 {
  checks_words = FILENAME ~ /^kernels\//
  if (checks_words) check_words(FILENAME)
}

checks_words { check_words($0) }

# A clock that is set must neither end what goes on nor let it hang.
FILENAME ~ /^(server|client\/(library|cli))\// && match($0, /absl::Now\(|GetCurrentTimeNanos|system_clock::now|WaitForNotificationWith|WaitWith(Timeout|Deadline)/) {
  violation("\"" substr($0, RSTART, RLENGTH) "\" follows the clock of the machine, which may be set: steady_now() of proto/steady_time.h, or a wait of the standard library")
}

FNR == 401 { violation("more than 400 lines; split the file by what its parts do") }

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  quoted = $0 ~ /include[ \t]*"/
  path = $0
  sub(/^[^"<]*["<]/, "", path)
  sub(/[">].*$/, "", path)
  check_include(path, quoted)
}

END {
  if (violations > 0) {
    print violations " violations"
    exit 1
  }
  print ARGC - 1 " files keep the rules"
}' $sources
