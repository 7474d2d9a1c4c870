#!/usr/bin/env python3
"""What it takes Python until CuPy has read a buffer of a server on the same GPU, by an import and by the host, and the other way round.

    PYTHONPATH=python/src bench/service/python_device_sharing.py CUMULUSD [--sizes 24 256] [--rounds 21] [--json FILE]

All take turns in one run. Exits with 1 where what came is not what was sent.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import cumulus
import cupy
import numpy as np


def serve(program, folder):
    port_file = folder / "address"
    daemon = subprocess.Popen([program, "--listen", f"unix:{folder / 'socket'}", "--backend", "cuda", "--lame-duck", "0", "--memory", "8G",
                               "--shared-device-memory", "4G", "--port-file", str(port_file)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not port_file.exists() and daemon.poll() is None:
        time.sleep(0.01)
    return daemon, f"unix:{folder / 'socket'}"


def read(array):
    """On the GPU, all of it."""
    total = int(cupy.asarray(array).sum(dtype=cupy.uint64))  # waits
    return total


def subjects(c, sent):
    there = cupy.asarray(sent)
    b = c.upload(sent)
    frame = c.allocate_device_array(sent.shape, sent.dtype)
    cupy.asarray(frame)[...] = there
    held = {"import": None}

    def import_it():
        held["import"] = c.import_buffer(b)

    def drop():
        held["import"] = None

    ways = {
        "import": (drop, import_it),
        "import and first use": (drop, lambda: read(c.import_buffer(b))),
        "first use": (import_it, lambda: read(held["import"])),
        "end of an import": (import_it, drop),
        "download": (None, b.numpy),
        "download and first use": (None, lambda: read(b.numpy())),
        "upload of a CuPy array": (None, lambda: c.upload(there)),
        "upload of an own device array": (None, lambda: c.upload(frame)),
        "upload of a CuPy array by the host": (None, lambda: c.upload(cupy.asnumpy(there))),
    }
    total = int(sent.sum(dtype=np.uint64))
    right = (read(c.import_buffer(b)) == total and np.array_equal(c.import_buffer(b).numpy(), sent)
             and np.array_equal(c.upload(there).numpy(), sent) and np.array_equal(c.upload(frame).numpy(), sent))
    return ways, right


def measure(c, mebibytes, rounds):
    sent = np.frombuffer(np.random.default_rng(1).bytes(mebibytes << 20), np.uint8)
    ways, right = subjects(c, sent)
    times = {name: [] for name in ways}
    for turn in range(rounds + 2):
        for name, (prepare, run) in ways.items():
            if prepare is not None:
                prepare()
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            result = run()
            seconds = time.perf_counter() - start
            del result
            if turn >= 2:
                times[name].append(seconds)
    rows = [{"mebibytes": mebibytes, "name": name, "median_seconds": statistics.median(each), "least_seconds": min(each)}
            for name, each in times.items()]
    print(f"{mebibytes} MiB, {rounds} rounds; what came is {'' if right else 'NOT '}what was sent")
    for row in rows:
        print(f"  {row['name']:36}{1e3 * row['median_seconds']:9.3f} ms")
    return rows, right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cumulusd")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 24, 256], help="MiB")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        daemon, address = serve(options.cumulusd, pathlib.Path(folder))
        try:
            with cumulus.connect(address) as c:
                results = [measure(c, size, options.rounds) for size in options.sizes]
                device = c.capabilities.devices[0].model
        finally:
            daemon.terminate()
            daemon.wait()
    if options.json:
        rows = [row for rows, _ in results for row in rows]
        text = json.dumps({"device": device, "rounds": options.rounds, "rows": rows}, indent=1)
        pathlib.Path(options.json).write_text(text + "\n", encoding="utf-8")
    return 0 if all(right for _, right in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
