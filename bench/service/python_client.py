#!/usr/bin/env python3
"""The Python client beside the C++ one, on one server, in turns: transfers, and calls on data in the server's memory.

    PYTHONPATH=python/src bench/service/python_client.py CUMULUS CUMULUSD [--library LIBCUMULUS] [--backend cpu] [--size 2048]
        [--repeat 5] [--rounds 5] [--json FILE]

CUMULUS is the command line, whose `bench` measures the C++ client. LIBCUMULUS is the client library for C: the client in Python is then
measured without it and with it. Each round runs all; the medians are compared.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import cumulus
import numpy as np


@contextlib.contextmanager
def serve(program, backend="cpu"):
    """The address of a server of its own, on a port that the system chooses and the server names."""
    with tempfile.TemporaryDirectory() as folder:
        named = pathlib.Path(folder) / "address"
        words = [program, "--listen", "127.0.0.1:0", "--port-file", str(named), "--backend", backend, "--lame-duck", "0"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
            try:
                while not named.exists():
                    if daemon.poll() is not None:
                        raise SystemExit(f"{program} ended, {daemon.returncode}, before it served")
                    time.sleep(0.01)
                yield named.read_text(encoding="utf-8").strip()
            finally:
                daemon.terminate()


def cpp(program, address, size, repeat):
    said = json.loads(subprocess.run([program, "--server", address, "--json", "bench", "--size", str(size),
                                      "--repeat", str(repeat)], check=True, capture_output=True).stdout)
    rows = {row["name"]: row for row in said["operations"]}
    blur = next(row for name, row in rows.items() if "blur" in name)
    return {"upload_gb_s": said["upload_gigabytes_per_second"], "download_gb_s": said["download_gigabytes_per_second"],
            "round_trip_us": said["round_trip_seconds"] * 1e6,
            "computing_us": blur["compute_seconds"] * 1e6,
            "beyond_computing_us": (blur["call_seconds"] - blur["compute_seconds"]) * 1e6}


def median(count, call):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def python(client, size, repeat):
    image = np.random.default_rng(1).random((size, size), dtype=np.float32)
    upload = median(repeat, lambda: client.upload(image))
    resident = client.upload(image)
    download = median(repeat, lambda: resident.numpy(np.empty_like(image)))
    calls, computing = [], []
    resident.blur(8, method="deriche")  # takes memory, warms caches, as `cumulus bench` does
    for _ in range(repeat):
        start = time.perf_counter()
        result = resident.blur(8, method="deriche")  # whose blur this is
        calls.append(time.perf_counter() - start)
        del result  # as it, after the time has been taken
        computing.append(client.timings.compute)
    gigabytes = image.nbytes / 1e9
    return {"upload_gb_s": gigabytes / upload, "download_gb_s": gigabytes / download,
            "round_trip_us": median(50, client.session.renew) * 1e6,
            "computing_us": statistics.median(computing) * 1e6,
            "beyond_computing_us": (statistics.median(calls) - statistics.median(computing)) * 1e6}


def connect(address, library):
    os.environ["CUMULUS_C_LIBRARY"] = library
    client = cumulus.connect(address)
    for _ in range(20):  # from the sixteenth on, calls are the library's
        client.session.renew()
    return client


def measure(options, address):
    """The medians of each way, by name."""
    ways = {"Python": connect(address, "")}
    if options.library:
        ways["Python with the library"] = connect(address, options.library)
    rounds = []
    for _ in range(options.rounds):
        rounds.append({way: python(client, options.size, options.repeat) for way, client in ways.items()})
        rounds[-1]["C++"] = cpp(options.cumulus, address, options.size, options.repeat)
    for client in ways.values():
        client.close()
    return {way: {name: statistics.median(each[way][name] for each in rounds) for name in rounds[0][way]} for way in rounds[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cumulus")
    parser.add_argument("cumulusd")
    parser.add_argument("--library", default="")
    parser.add_argument("--backend", default="cpu", help="of the server")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--repeat", type=int, default=5, help="calls of each kind in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    with serve(options.cumulusd, options.backend) as address:
        middles = measure(options, address)
    print(f"{'':24}" + "".join(f"{way:>26}" for way in middles))
    for name in middles["C++"]:
        print(f"{name:24}" + "".join(f"{each[name]:26.2f}" for each in middles.values()))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"backend": options.backend, "size": options.size, "repeat": options.repeat, "rounds": options.rounds, "ways": middles}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
