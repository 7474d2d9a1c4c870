"""A cumulusd on loopback, for the scripts that time it."""
import contextlib
import pathlib
import subprocess
import time


@contextlib.contextmanager
def daemon(build, folder, backend):
    """Its address."""
    port_file = pathlib.Path(folder, "address")
    server = subprocess.Popen([f"{build}/bin/cumulusd", "--backend", backend, "--listen", "127.0.0.1:0", "--port-file", port_file],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not port_file.exists() or not port_file.read_text(encoding="utf-8").strip():
            assert server.poll() is None, "cumulusd did not start"
            time.sleep(0.05)
        yield port_file.read_text(encoding="utf-8").split()[0]
    finally:
        server.terminate()
        server.wait()
