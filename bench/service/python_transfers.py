#!/usr/bin/env python3
"""Transfers of the Python client beside those of the C++ one, through shared memory and over TCP, in turns.

    PYTHONPATH=python/src bench/service/python_transfers.py CUMULUSD TRANSFER_BENCH [--library LIBCUMULUS] [--sizes 24 256] [--turns 5]

TRANSFER_BENCH is cumulus_transfer_bench, which measures the C++ client, of the same daemon, and a memcpy of the same bytes. LIBCUMULUS is the client library
for C: the client in Python is then measured without it and with it. Each turn runs all; rates of the same turn are compared, and medians
are shown. Exits with 1 where what came back is not what was sent.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import cumulus
import numpy as np
from python_client import serve

REPEAT = 7  # of each kind in a turn
NAMES = ("upload, shared", "download, shared", "of a region", "into a region", "upload", "download")


def cpp(program, address, mebibytes):
    """Seconds by name, the median of the turn."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "rows.json"
        subprocess.run([program, "--backend", "cpu", "--server", address, "--size", str(mebibytes), "--rounds", str(REPEAT),
                        "--json", str(result)], check=True, stdout=subprocess.DEVNULL)
        return {row["name"]: row["median_seconds"] for row in json.loads(result.read_text())["rows"]}


class Python:
    """The clients of one daemon, and arrays of one size."""

    def __init__(self, address, mebibytes, library=""):
        os.environ["CUMULUS_C_LIBRARY"] = library  # until the first transfer
        self.shared = cumulus.connect(address)
        self.streams = cumulus.connect(address, shared_memory=False)
        self.sent = np.frombuffer(np.random.default_rng(1).bytes(mebibytes << 20), np.uint8)
        self.received = np.zeros_like(self.sent)
        self.filled = self.region()
        self.resident = {client: client.upload(self.sent) for client in (self.shared, self.streams)}

    def region(self):
        array = self.shared.allocate_shared(self.sent.shape, self.sent.dtype)
        array[:] = self.sent
        return array

    def cleared(self):
        self.filled[:] = 0
        return self.filled

    def turn(self):
        """Seconds by name, the median of the turn."""
        calls = {
            "upload, shared": lambda _: self.shared.upload(self.sent),
            "download, shared": lambda _: self.resident[self.shared].numpy(self.received),
            "of a region": self.shared.upload,
            "into a region": self.resident[self.shared].numpy,
            "upload": lambda _: self.streams.upload(self.sent),
            "download": lambda _: self.resident[self.streams].numpy(self.received),
        }
        times = {name: [] for name in NAMES}
        for _ in range(REPEAT):
            for name, call in calls.items():
                argument = {"of a region": self.region, "into a region": self.cleared}.get(name, lambda: None)()
                start = time.perf_counter()
                call(argument)
                times[name].append(time.perf_counter() - start)
        return {name: statistics.median(each) for name, each in times.items()}

    def close(self):
        right = np.array_equal(self.sent, self.received) and np.array_equal(self.sent, self.filled)
        self.shared.close()
        self.streams.close()
        return right


def compare(daemon_address, program, library, mebibytes, turns):
    ways = {"Python": Python(daemon_address, mebibytes)}
    if library:
        ways["Python with the library"] = Python(daemon_address, mebibytes, library)
    for ours in ways.values():
        ours.turn()  # not counted
    measured = {way: [] for way in ways}
    for _ in range(turns):
        theirs = cpp(program, daemon_address, mebibytes)
        for way, ours in ways.items():
            measured[way].append((ours.turn(), theirs))
    right = all([ours.close() for ours in ways.values()])
    return [row for way, rounds in measured.items() for row in show(way, rounds, mebibytes, right)], right


def show(way, rounds, mebibytes, right):
    """Prints and answers the rows of one of Python's ways."""
    gigabytes = (mebibytes << 20) / 1e9
    memcpy = gigabytes / statistics.median(theirs["memcpy"] for _, theirs in rounds)
    turns = len(rounds)
    print(f"{mebibytes} MiB, {turns} turns; memcpy {memcpy:.2f} GB/s; what came back is {'' if right else 'NOT '}what was sent")
    rows = []
    for name in NAMES:
        rows.append({"way": way, "mebibytes": mebibytes, "name": name,
                     "python_gb_s": gigabytes / statistics.median(each[name] for each, _ in rounds),
                     "cpp_gb_s": gigabytes / statistics.median(each[name] for _, each in rounds),
                     "ratios": [theirs[name] / each[name] for each, theirs in rounds]})
        row = rows[-1]
        print(f"{name:18} {way} {row['python_gb_s']:8.2f} GB/s   C++ {row['cpp_gb_s']:8.2f} GB/s   "
              f"{statistics.median(row['ratios']):5.2f} times ({min(row['ratios']):.2f} to {max(row['ratios']):.2f})")
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cumulusd")
    parser.add_argument("transfer_bench")
    parser.add_argument("--sizes", type=int, nargs="+", default=[24, 256], help="MiB")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--library", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    with serve(options.cumulusd) as address:
        results = [compare(address, options.transfer_bench, options.library, size, options.turns) for size in options.sizes]
    if options.json:
        rows = [row for rows, _ in results for row in rows]
        text = json.dumps({"repeat": REPEAT, "turns": options.turns, "rows": rows}, indent=1)
        pathlib.Path(options.json).write_text(text + "\n", encoding="utf-8")
    return 0 if all(right for _, right in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
