"""Several servers behind one address: a client stays with the one that has its arrays."""

import contextlib
import itertools
import socket
import subprocess
import threading
import time

import cumulus
import numpy as np
import pytest
from conftest import PROGRAMS


def free_ports(count):
    with contextlib.ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in sockets]


def copy(source, target):
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(1 << 16)
            if not data:
                break
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class Balancer:
    """Gives each connection to the next of the servers that takes it."""

    def __init__(self, ports):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._ports = ports
        self._turns = itertools.cycle(range(len(ports)))
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        for _ in self._ports:
            with contextlib.suppress(OSError):
                server = socket.create_connection(("127.0.0.1", self._ports[next(self._turns)]))
                threading.Thread(target=copy, args=(client, server), daemon=True).start()
                copy(server, client)
                return
        client.close()

    def close(self):
        self._listener.close()


@pytest.fixture
def replicas(tmp_path):
    """The balancer's address, and the daemons by the addresses that they advertise."""
    ports = free_ports(3)
    daemons = {}
    for port in ports:
        config = tmp_path / f"{port}.textproto"
        config.write_text(f'listen: "127.0.0.1:{port}" advertise: "127.0.0.1:{port}" devices {{ backend: CPU cpu_memory_bytes: 500000000 }}')
        daemons[f"127.0.0.1:{port}"] = subprocess.Popen([PROGRAMS / "cumulusd", "--config", config, "--port-file", tmp_path / str(port)],
                                                        stderr=subprocess.DEVNULL)
    balancer = Balancer(ports)
    try:
        for port, daemon in zip(ports, daemons.values()):
            while not (tmp_path / str(port)).exists() and daemon.poll() is None:
                time.sleep(0.01)
        yield balancer.address, daemons
    finally:
        balancer.close()
        for daemon in daemons.values():
            daemon.kill()
            daemon.wait()


ARRAYS = [np.full((1 << 20,), value, np.float32) for value in range(6)]


def round_trips(c):
    kept = [c.upload(array) for array in ARRAYS]
    assert all(np.array_equal(each.numpy(), array) for each, array in zip(kept, ARRAYS))
    assert c.upload(np.ones((64, 64), np.float32)).blur(2).numpy().shape == (64, 64)
    return kept


@pytest.mark.parametrize("connections", [1, 3])
def test_arrays_stay_with_one_server(replicas, connections):
    address, daemons = replicas
    used = set()
    for _ in range(4):
        with cumulus.connect(address, connections=connections, shared_memory=False) as c:
            round_trips(c)
            used.add(c.connection.address)
            assert c.address == address and c.session.connection.address in daemons
    assert len(used) > 1, "sessions are spread"


@pytest.mark.parametrize("recreate", [False, True])
def test_another_takes_the_place_of_one_that_is_gone(replicas, recreate):
    address, daemons = replicas
    with cumulus.connect(address, recreate=recreate, shared_memory=False) as c:
        kept = round_trips(c)
        gone = daemons[c.connection.address]
        gone.kill()
        gone.wait()
        if recreate:
            assert np.array_equal(kept[3].numpy(), ARRAYS[3])
        else:
            with pytest.raises(cumulus.Unavailable):
                kept[3].numpy()
            with pytest.raises(cumulus.NotFound):
                kept[3].numpy()
        round_trips(c)
        assert daemons[c.connection.address].poll() is None
