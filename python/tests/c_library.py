"""Clients with the client library for C, and without."""

import concurrent.futures
import contextlib
import signal
import time

import cumulus
import numpy as np
import pytest
from conftest import PROGRAMS
from cumulus.c_library import channel

LIBRARY = PROGRAMS.parent / "client" / "libcumulus.so.0"
MIB = 1 << 20
RANDOM = np.random.default_rng(47)


@contextlib.contextmanager
def connected(address, library, **options):
    """A client that takes the library for its first transfer, or none; and its transfers by it."""
    with _connected(channel.Transfer, address, library, **options) as both:
        yield both


@contextlib.contextmanager
def calling(address, library, **options):
    """A client that takes the library from its first call on, or none; and its calls by it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel, "_CALLS_BEFORE", 0)
        with _connected(channel.Call, address, library, **options) as both:
            yield both


@contextlib.contextmanager
def _connected(kind, address, library, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUMULUS_C_LIBRARY", str(LIBRARY) if library else "")
        by_library = []
        whole = kind.__init__
        patch.setattr(kind, "__init__", lambda self, *rest, **more: (by_library.append(1), whole(self, *rest, **more))[1])
        with cumulus.connect(address, **options) as c:
            yield c, by_library


def end_when_closed(daemon, client, call, patience):
    """What waits for a server that stands still ends, with an error, as the client is closed; and `call` is refused from then on."""
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        daemon.stand_still()
        waiting = threads.submit(call)
        time.sleep(0.2)
        client.connection.close()
        with pytest.raises(cumulus.Error):
            waiting.result(patience)
        daemon.signal(signal.SIGCONT)
        with pytest.raises(cumulus.Unavailable, match="closed"):
            call()


def random(shape, dtype):
    count = int(np.prod(shape))
    return np.frombuffer(RANDOM.bytes(count * np.dtype(dtype).itemsize), dtype).reshape(shape)


def told(error):
    return (type(error), str(error), error.code, error.field, error.cure, error.reason, sorted(error.metadata), error.violations)
