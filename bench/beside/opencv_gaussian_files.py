#!/usr/bin/env python3
"""Times `cumulus blur` through a daemon beside OpenCV's GaussianBlur, from file to file, for docs/operations/recursive_filter.md.

    taskset -c 0,1 bench/beside/opencv_gaussian_files.py build/release --json opencv_gaussian_files.json

Needs numpy and opencv-python. Cumulus is the whole command, as a user starts it: the program begins, reads a .npy file of float32,
sends it over loopback to a cumulusd with the CPU backend, which blurs it, fetches the result, writes it, and ends. OpenCV is
numpy.load, GaussianBlur (4 sigma to either side) and numpy.save in a Python that runs already and has everything imported. The files
lie in memory (/dev/shm). Of each, the blur alone is told too: the client's call on data that the daemon has, and GaussianBlur. All take
turns; a row has the best of each.
"""
import collections
import itertools
import json
import os
import subprocess
import tempfile
import time

import cv2
import numpy

from daemon import daemon
from opencv import options_of, write

SIGMAS = (2, 8, 32)
METHODS = ("deriche", "young")
TURNS = 7


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next((line.split(": ")[1].strip() for line in lines if line.startswith("model name")), "unknown processor")


def opencv(folder, sigma):
    """Seconds in all, and of the blur."""
    begin = time.perf_counter()
    image = numpy.load(f"{folder}/in.npy")
    loaded = time.perf_counter()
    blurred = cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    done = time.perf_counter()
    numpy.save(f"{folder}/opencv.npy", blurred)
    return time.perf_counter() - begin, done - loaded


def cumulus(options, address, folder, sigma, method):
    """Seconds in all, and of the call."""
    begin = time.perf_counter()
    ended = subprocess.run([f"{options.build}/bin/cumulus", "--server", address, "--json", "blur", f"{folder}/in.npy", "-o",
                            f"{folder}/{method}.npy", "--sigma", str(sigma), "--method", method, "--boundary", "clamp"],
                           check=True, stdout=subprocess.PIPE)
    return time.perf_counter() - begin, json.loads(ended.stdout)["seconds"]["compute"]


def measure(options, address, folder, sigma):
    """{opencv or a method: the best seconds in all, and of the blur}, and how far each method's pixels are from OpenCV's."""
    samples = collections.defaultdict(list)
    for _ in range(TURNS):
        samples["opencv"].append(opencv(folder, sigma))
        for method in METHODS:
            samples[method].append(cumulus(options, address, folder, sigma, method))
    theirs = numpy.load(f"{folder}/opencv.npy")
    differences = {method: numpy.abs(numpy.load(f"{folder}/{method}.npy") - theirs).max() for method in METHODS}
    assert max(differences.values()) < 0.01, differences
    return {name: tuple(map(min, zip(*pairs))) for name, pairs in samples.items()}, differences


def main():
    options = options_of(__doc__)
    rows = []
    print("| | file to file: Cumulus ms | OpenCV | ratio | the blur: Cumulus ms | OpenCV | ratio | difference |\n" + "|---" * 8 + "|")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, daemon(options.build, folder, "cpu") as address:
        for side, channels, sigma in itertools.product(options.sides, (1, 3), SIGMAS):
            shape = (side, side) if channels == 1 else (side, side, channels)
            numpy.save(f"{folder}/in.npy", numpy.random.default_rng(1).random(shape, dtype=numpy.float32))
            best, differences = measure(options, address, folder, sigma)
            for method in METHODS:
                row = {"name": f"blur/{method}-{sigma}/{'x'.join(map(str, shape))}"}
                for what, ours, theirs in zip(("", "call_"), best[method], best["opencv"]):
                    row |= {f"cumulus_{what}us": round(ours * 1e6, 1), f"opencv_{what}us": round(theirs * 1e6, 1),
                            f"{what}ratio": round(theirs / ours, 3)}
                rows.append(row | {"difference": f"{differences[method]:.1e}", "samples": f"best of {TURNS}"})
                print("| " + " | ".join(str(round(value / 1e3, 1)) if key.endswith("us") else str(value)
                                        for key, value in rows[-1].items() if key != "samples") + " |", flush=True)
    if options.json:
        write(options.json, rows, [f"cpu: {processor()}, {len(os.sched_getaffinity(0))} threads", f"OpenCV {cv2.__version__}, {cv2.getNumThreads()} threads"])


main()
