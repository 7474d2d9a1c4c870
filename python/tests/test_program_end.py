"""What a program leaves on the server that ends without closing its client."""

import os
import pathlib
import subprocess
import sys

import cumulus
import pytest
from fake_server import server  # noqa: F401


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "os.kill(os.getpid(), signal.SIGINT)", "os.fork() or sys.exit()"])
def test_a_program_that_closes_nothing_leaves_no_session(server, end):
    program = f"import cumulus, os, signal, sys; c = cumulus.connect({server.address!r}); c.session; {end}"
    source = str(pathlib.Path(cumulus.__file__).parents[1])
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": source}, stderr=subprocess.DEVNULL, check=False)
    assert server.count("CreateSession") == server.count("DeleteSession") == 1
