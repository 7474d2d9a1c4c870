"""Imports gRPC with the client's sockets polled by the thread that waits, as gRPC for Python did up to 1.76, and with its
errors alone on stderr.

Newer ones leave that to threads of an "event engine", by way of which an answer takes two more switches of threads, a
third of a small call's time. They also say on stderr that a server has closed a connection on which nothing went on, which
is as it should be. gRPC reads both settings once, from the environment, as it is loaded: hence no other module is to import
it before this one. The user's own GRPC_EXPERIMENTS and GRPC_VERBOSITY, and a gRPC that is loaded already, stay as they are.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from typing import Dict

_FIRST, _LAST = (1, 73), (1, 85)  # tested; gRPC writes a line to stderr about an experiment that it does not know


def _has_event_engine() -> bool:
    try:
        version = re.match(r"(\d+)\.(\d+)", importlib.metadata.version("grpcio"))
    except importlib.metadata.PackageNotFoundError:
        return False
    return version is not None and _FIRST <= (int(version[1]), int(version[2])) <= _LAST


def _settings() -> Dict[str, str]:
    quiet = {"GRPC_VERBOSITY": "ERROR"}
    return {**quiet, "GRPC_EXPERIMENTS": "-event_engine_client"} if _has_event_engine() else quiet


def load() -> None:
    added = {name: value for name, value in _settings().items() if name not in os.environ}
    os.environ.update(added)
    try:
        import grpc  # noqa: F401
    finally:
        for name in added:
            del os.environ[name]  # not for the processes that this one starts


load()
