"""What becomes of a client's arrays when the server's clock is set."""

import os
import shutil
import subprocess
import time

import cumulus
import numpy as np
import pytest
from conftest import PROGRAMS
from cumulus import session
from cumulus.v1 import sessions_pb2

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="a clock that can be set is compiled with cc")

# The seconds in the file CLOCK_STEP are added to what the clock says.
CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile long long *step;
int clock_gettime(clockid_t clock, struct timespec *time) {
  if (!step) step = mmap(0, sizeof(*step), PROT_READ, MAP_SHARED, open(getenv("CLOCK_STEP"), O_RDONLY), 0);
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += *step;
  return result;
}
"""


@needs_compiler
def test_leases_do_not_end_when_it_is_set_forward(tmp_path):
    (tmp_path / "clock.c").write_text(CLOCK)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", tmp_path / "clock.so", tmp_path / "clock.c"], check=True)
    step, port_file, log = tmp_path / "step", tmp_path / "address", tmp_path / "log"
    step.write_bytes(bytes(8))
    with open(log, "wb") as errors:
        daemon = subprocess.Popen([PROGRAMS / "cumulusd", "--listen", f"unix:{tmp_path / 'socket'}", "--backend", "cpu", "--lame-duck", "0",
                                   "--drain", "0", "--port-file", port_file],
                                  env={**os.environ, "LD_PRELOAD": str(tmp_path / "clock.so"), "CLOCK_STEP": str(step)}, stderr=errors)
    try:
        while not port_file.exists() and daemon.poll() is None:
            time.sleep(0.01)
        with cumulus.connect(f"unix:{tmp_path / 'socket'}") as c:
            array = np.arange(1000)
            resident = c.upload(array)
            with open(step, "r+b") as file:
                file.write((3 * 3600).to_bytes(8, "little"))
            time.sleep(2.5)  # more than between two looks for leases that have ended
            assert np.array_equal(resident.numpy(), array)
            c.blur(np.zeros((4, 4), np.float32), 2)  # leaves a line with the time
        assert time.strftime("%Y-%m-%d %H", time.gmtime(time.time() + 3 * 3600)) in log.read_text(), "the clock was not set"
    finally:
        daemon.kill()
        daemon.wait()


def test_a_lease_is_renewed_in_time_by_a_client_whose_clock_is_behind(monkeypatch):
    class Connection:
        def call(self, method, request, response, *_):
            made = sessions_pb2.Session(name="sessions/1")
            made.expire_time.FromSeconds(int(time.time()) + 600 + 24 * 3600)  # of a server that is a day ahead
            return made

        def to(self, endpoint):
            return self

        def take_session(self, name, instance):
            pass

    leases = []
    monkeypatch.setattr(session, "_attend", lambda _, connection, released, lease: leases.append(lease.seconds))
    made = session.Session(Connection())
    made._thread.join()
    assert leases == [180], "a third of that is the time between two renewals"
