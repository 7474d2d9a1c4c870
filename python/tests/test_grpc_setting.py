"""gRPC as cumulus loads it: answers come to the thread that waits, and nothing is said of what is as it should be."""

import os
import subprocess
import sys

from local_daemon import LocalDaemon

PROGRAM = """
import os, resource, sys
import cumulus

assert os.environ.get("GRPC_EXPERIMENTS") == (sys.argv[2] or None), os.environ.get("GRPC_EXPERIMENTS")
with cumulus.connect(sys.argv[1]) as c:
    c.session.renew()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    for _ in range(200):
        c.session.renew()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before) / 200)
"""


def switches(client, experiments):
    """Of threads, for a call."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), GRPC_EXPERIMENTS=experiments)
    if not experiments:
        del environment["GRPC_EXPERIMENTS"]
    words = [sys.executable, "-c", PROGRAM, client.address, experiments]
    return float(subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout)


def test_an_answer_takes_few_switches_of_threads(client):
    assert switches(client, "") < 2.5


def test_experiments_of_the_user_s_own_stay(client):
    assert switches(client, "tcp_frame_size_tuning") > 0  # the program compares what the environment says


PAUSES = """
import sys, time
import cumulus

with cumulus.connect(sys.argv[1]) as c:
    for pause in map(float, sys.argv[2:]):
        c.session.renew()
        time.sleep(pause)
    c.session.renew()
"""


def call_with_pauses(folder, *pauses):
    """What the program writes to stderr; the server closes a connection without calls after 0.9 to 1.8 seconds."""
    config = folder / "cumulusd.config"
    config.write_text("connections { half_message { seconds: 2 } }", encoding="utf-8")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    environment.pop("GRPC_VERBOSITY", None)
    with LocalDaemon(folder, "--config", config) as daemon:
        words = [sys.executable, "-c", PAUSES, daemon.address, *map(str, pauses)]
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_no_call_goes_over_a_connection_that_the_server_has_closed(tmp_path):
    call_with_pauses(tmp_path, 1.9, 2.2, 1.2, 2.5, 1.5)


def test_that_the_server_has_closed_one_is_no_news(tmp_path):
    assert call_with_pauses(tmp_path, 8) == ""  # gRPC looks every 5 seconds
