#!/bin/sh
# Runs python/tests, or the notebooks, or one file, in the environment of scripts/python_env.
#   run_tests.sh SOURCE PROGRAMS [notebooks | coco_masks | FILE]   FILE: of python/tests; without one all but what has a test of its own
set -eu
python=$1/build/python_env/bin/python
if ! "$python" -c 'import grpc, numpy, pytest' 2>/dev/null; then
  echo "skipped: $1/build/python_env is missing; scripts/python_env makes it of PyPI's packages"
  exit 77
fi
if ! command -v protoc >/dev/null; then
  echo "skipped: protoc is not installed; scripts/setup does that"
  exit 77
fi
cd "$1/python"
export CUMULUS_PROGRAMS="$2"
case "${3:-}" in
  coco_masks) exec "$python" ../bench/beside/peers.py "$CUMULUS_PROGRAMS/cumulus" --peers pycocotools --bar 1 ;;
  notebooks) exec "$python" tests/run_notebooks.py ;;
  "") exec "$python" -m pytest -q -p no:cacheprovider --ignore tests/test_mitsuba_variants.py --ignore tests/test_gallery.py \
    --ignore tests/test_c_library.py --ignore tests/test_c_library_calls.py --ignore tests/test_shared_memory.py --ignore tests/test_shared_memory_faults.py --ignore tests/test_shared_downloads.py \
    --ignore tests/test_device_sharing_gpu.py tests ;;
  *) exec "$python" -m pytest -q -p no:cacheprovider "tests/$3" ;;
esac
