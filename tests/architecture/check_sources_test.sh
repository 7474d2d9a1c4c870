#!/bin/sh
# Plants one violation of each rule in a small tree and expects check_sources.sh to name it, and nothing else.
#   check_sources_test.sh CHECK_SOURCES
set -eu
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect EXIT_CODE PATTERN FILE LINE...: a tree of this one file (and one that keeps the rules).
expect() {
  code=$1 pattern=$2 file=$3
  shift 3
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/kernels/core" "$tree/$(dirname "$file")"
  echo '#include <vector>' >"$tree/kernels/core/views.h"
  printf '%s\n' "$@" >"$tree/$file"
  status=0
  output=$(sh "$check" "$tree") || status=$?
  if [ "$status" -ne "$code" ] || ! printf '%s\n' "$output" | grep -q "$pattern"; then
    echo "FAILED: $file with: $*"
    echo "  expected exit $code and /$pattern/; got exit $status and: $output"
    failures=$((failures + 1))
  fi
}

reject() { file=$1; shift; expect 1 "^$file:[0-9]*: " "$file" "$@"; }
accept() { file=$1; shift; expect 0 '^2 files keep the rules$' "$file" "$@"; }

reject kernels/core/memory.h '#include "kernels/primitives/scan.h"'
reject kernels/primitives/scan.h '#include "kernels/blur/blur.h"'
reject kernels/blur/blur.h '#include "kernels/sharpen/sharpen.h"'
reject kernels/blur/blur.h '#include "server/pipeline/errors.h"'
reject kernels/blur/blur.h '#include <grpcpp/grpcpp.h>'
reject kernels/blur/blur.h '#include "cumulus/v1/blur.pb.h"'
reject kernels/blur/blur.h '  #  include <spdlog/spdlog.h>'
reject proto/checksums.h '#include "server/runtime/device.h"'
reject server/runtime/device.h '#include "server/operations/blur.h"'
reject server/runtime/device.h '#include "kernels/blur/blur.h"'
reject server/runtime/device.h '#include <cuda_runtime.h>'
reject server/runtime/device.h '#include <cub/cub.cuh>'
reject server/pipeline/call.h '#include "server/operations/blur.h"'
reject server/operations/blur.h '#include "server/operations/sharpen.h"'
reject server/operations/blur.h '#include "kernels/sharpen/sharpen.h"'
reject server/operations/blur.h '#include "cumulus/v1/sharpen.pb.h"'
reject server/operations/blur.h '#include "server/runtime/device.h"'
reject server/main.cc '#include "tests/support/executors.h"'
reject server/main.cc '#include <OpenImageIO/imageio.h>'
reject client/library/session.cc '#include "server/pipeline/errors.h"'
reject client/library/session.cc '#include "kernels/core/views.h"'
reject client/library/session.cc '#include <OpenImageIO/imageio.h>'
reject client/cli/image_file.cc '#include <OpenImageIO/imageio.h>'
reject client/library/session.cc '#include "images/load.h"'
reject server/pipeline/call.h '#include "images/load.h"'
reject images/load.cc '#include "server/pipeline/errors.h"'
reject client/include/cumulus/client.h '#include "library/wire.h"'
reject client/include/cumulus/client.h '#include "cumulus/v1/array.pb.h"'
reject bench/operations/blur.cc '#include <cuda_runtime.h>'
reject client/library/session.cc '#include <cuda.h>'
reject client/include/cumulus/device_sharing.h '#include <cuda_runtime.h>'
reject tests/end_to_end/device_sharing_test.cc '#include <cuda_runtime.h>'
reject tests/kernels/blur_test.cc "$(yes '// a line' | head -n 401)"

reject kernels/blur/blur.h '// Waits until the block above has told its sums.'
reject kernels/blur/blur.h 'struct LineTold {};'
reject kernels/blur/blur.h 'int row_adder = 0;'
reject kernels/blur/blur.h 'constexpr int kPatience = 3;'
reject kernels/blur/blur.h '// a held tile'
reject kernels/blur/blur.h 'constexpr int kMostTiles = 3;'
reject kernels/blur/blur.h 'constexpr int kLeastTiles = 3;'
reject kernels/blur/slab.h '#include <vector>'

reject server/runtime/queue.cc 'const absl::Time end = absl::Now() + limit;'
reject client/library/call.cc 'context.set_deadline(std::chrono::system_clock::now() + limit);'
reject client/cli/job/job.cc 'done.WaitForNotificationWithTimeout(delay);'
accept proto/steady_time.h 'inline absl::Time steady_now() { return absl::Now(); }'
accept server/runtime/queue.cc 'const absl::Time end = steady_now() + limit;'

accept kernels/blur/blur.h '// A storyteller, hearts, ladders and the future.' 'constexpr int kMaxTiles = 3;'
accept tests/kernels/blur_test.cc '// What a test tells.'
accept kernels/blur/blur_cuda.cu '#include "kernels/blur/blur.h"' '#include "kernels/primitives/scan.h"' '#include <cub/cub.cuh>'
accept server/operations/blur.h '#include "cumulus/v1/blur.pb.h"' '#include "kernels/blur/blur.h"'
accept server/runtime/transfer.cc '#include "proto/checksums.h"'
accept client/library/upload.cc '#include "proto/checksums.h"'
accept images/openimageio.cc '#include <OpenImageIO/imageio.h>' '#include "images/image_library.h"'
accept server/runtime/image_decoder.cc '#include "images/load.h"'
accept client/library/device_sharing/driver.h '#include <cuda.h>'
accept tests/end_to_end/gpu_program.cu '#include <cuda_runtime.h>'
accept bench/baselines/blur.cu '#include <cuda_runtime.h>' '#include "tests/cases/blur_case.h"'
accept examples/blur.cu '#include <thrust/device_vector.h>'
accept tests/kernels/blur_test.cc "$(yes '// a line' | head -n 400)"

mkdir "$tree/empty"
if sh "$check" "$tree/empty" 2>/dev/null; then
  echo "FAILED: a tree without sources was accepted"
  failures=$((failures + 1))
fi
[ "$failures" -eq 0 ] && echo "every planted violation was found"
