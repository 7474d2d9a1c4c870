"""gRPC as cumulus loads it: answers come to the thread that waits."""

import os
import subprocess
import sys

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
