"""How calls are cancelled, by KeyboardInterrupt or by a scope: against a server that a test chooses."""

import contextlib
import faulthandler
import signal
import threading
import time

import cumulus
import numpy as np
import pytest
from fake_server import DATA, connect, hanging, resident, server  # noqa: F401


def interrupt(_, __):
    raise KeyboardInterrupt


def once_called(server, method, then):
    """Does something from another thread when the server has had the call for a moment."""
    before = server.count(method)

    def watch():
        while server.count(method) == before:
            time.sleep(0.01)
        time.sleep(0.1)
        then()

    threading.Thread(target=watch, daemon=True).start()


def interrupted(server, method, call):
    """Calls, and interrupts it; how long it went on after that."""
    signal.signal(signal.SIGALRM, interrupt)
    at = []
    once_called(server, method, lambda: (at.append(time.monotonic()), signal.pthread_kill(
        threading.main_thread().ident, signal.SIGALRM)))
    with pytest.raises(KeyboardInterrupt):
        call()
    return time.monotonic() - at[0]


def test_keyboard_interrupt_cancels_a_call(server):
    with connect(server) as c:
        c.session
        ended = hanging(server, "GetSession")
        assert interrupted(server, "GetSession", c.session.renew) < 1.5
        assert ended.wait(10), "the server was not told"


@pytest.mark.parametrize("method", ["WriteBuffer", "ReadBuffer"])
def test_keyboard_interrupt_cancels_a_transfer(server, method):
    with connect(server) as c:
        array = resident(server, c)
        ended = hanging(server, method)
        call = array.numpy if method == "ReadBuffer" else lambda: c.upload(DATA)
        assert interrupted(server, method, call) < 1.5
        assert ended.wait(10), "the server was not told"


def test_keyboard_interrupt_ends_an_upload_at_any_moment(server):
    """Also in the middle of gRPC's code, whose locks it would leave locked: then the client would hang, and its next calls."""
    def hang(_, context):
        ended = threading.Event()
        if context.add_callback(ended.set):
            ended.wait(2)
        return b""

    random = np.random.default_rng(32)
    with connect(server) as c:
        resident(server, c)
        server.handlers["WriteBuffer"] = hang
        signal.signal(signal.SIGALRM, interrupt)
        faulthandler.dump_traceback_later(100, exit=True)  # a test that hangs says where
        for _ in range(100):
            # Error: Python itself loses an interrupt that comes while something is finalized, and the server's answer is none.
            with contextlib.suppress(KeyboardInterrupt, cumulus.Error):
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 0.01))
                    c.upload(DATA)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
        c.session.renew()
        faulthandler.cancel_dump_traceback_later()


def test_a_cancellation_stops_the_calls_within_it(server):
    with connect(server) as c:
        c.session
        ended = hanging(server, "GetSession")
        scope = cumulus.Cancellation()
        once_called(server, "GetSession", scope.cancel)
        with scope, pytest.raises(cumulus.Cancelled):
            c.session.renew()
        assert ended.wait(2)
