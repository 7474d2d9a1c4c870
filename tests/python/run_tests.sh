#!/bin/sh
# Runs python/tests, or the notebooks, in the environment of scripts/python_env.
#   run_tests.sh SOURCE PROGRAMS [notebooks]
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
if [ "${3:-}" = notebooks ]; then exec "$python" tests/run_notebooks.py; fi
exec "$python" -m pytest -q -p no:cacheprovider tests
