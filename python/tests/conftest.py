"""A server for all tests, of the programs in CUMULUS_PROGRAMS (build/release/bin without)."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("CUMULUS_PROGRAMS", ROOT / "build" / "release" / "bin"))
os.environ["PATH"] = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
os.environ.pop("CUMULUS_SERVER", None)
os.environ.setdefault("CUMULUS_C_LIBRARY", "")  # transfers are those in Python; test_c_library has the others
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"  # nor the user's configuration file
# gRPC's own handlers of fork() make a child's threads anew, which then fail before exec (Python 3.9 forks; newer ones
# use vfork, which has no handlers).
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

sys.path[:0] = [str(ROOT / "python" / "src"), str(ROOT / "python")]
import generate_messages  # noqa: E402

generate_messages.generate()
import cumulus  # noqa: E402


@pytest.fixture(autouse=True)
def _without_other_tests_regions():
    from local_daemon import leave_out_others

    leave_out_others()


@pytest.fixture(scope="session")
def client():
    with cumulus.connect(backend="cpu") as connected:
        yield connected


@pytest.fixture(scope="session")
def command_line(client):
    """Runs the command line against the same server."""
    program = PROGRAMS / "cumulus"
    if not program.exists():
        pytest.skip(f"{program} has not been built")

    def run(*arguments):
        words = [str(program), "--server", client.address, *map(str, arguments)]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    return run


@pytest.fixture(scope="session")
def sunrise(client):
    """The path of a lat-long map, 1024 x 512, RGB."""
    if not client.capabilities.image_formats:
        pytest.skip("this cumulusd reads no image files")
    return ROOT / "tests" / "data" / "sunrise.exr"
