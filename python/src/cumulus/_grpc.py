"""Imports gRPC with the client's sockets polled by the thread that waits, as gRPC for Python did up to 1.76.

Newer ones leave that to threads of an "event engine", by way of which an answer takes two more switches of threads, a
third of a small call's time. gRPC reads its experiments once, from the environment, as it is loaded: hence no other
module is to import it before this one. GRPC_EXPERIMENTS of the user's own, and a gRPC that is loaded already, stay
as they are.
"""

from __future__ import annotations

import importlib.metadata
import os
import re

_NAME = "GRPC_EXPERIMENTS"
_FIRST, _LAST = (1, 73), (1, 85)  # tested; gRPC writes a line to stderr about an experiment that it does not know


def _has_event_engine() -> bool:
    try:
        version = re.match(r"(\d+)\.(\d+)", importlib.metadata.version("grpcio"))
    except importlib.metadata.PackageNotFoundError:
        return False
    return version is not None and _FIRST <= (int(version[1]), int(version[2])) <= _LAST


def load() -> None:
    if _NAME in os.environ or not _has_event_engine():
        return
    os.environ[_NAME] = "-event_engine_client"
    try:
        import grpc  # noqa: F401
    finally:
        del os.environ[_NAME]  # not for the processes that this one starts


load()
