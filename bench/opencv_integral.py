#!/usr/bin/env python3
"""Times OpenCV's integral beside cumulus_bench on the same cores, for docs/operations/summed_area_table.md.

    taskset -c 0,1 bench/opencv_integral.py build/release/bench/cumulus_bench

Needs numpy and opencv-python. Runs the two in turn, three times, and prints the best median of each.
"""
import json
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy

SIDES = (1024, 2048, 4096)
KINDS = {
    "f32-f64": (numpy.float32, cv2.CV_64F),
    "f32-f32": (numpy.float32, cv2.CV_32F),
    "u8-u32": (numpy.uint8, cv2.CV_32S),
}


def opencv(kind, side):
    pixel, depth = KINDS[kind]
    image = (numpy.random.default_rng(1).random((side, side)) * 255).astype(pixel)
    sums = cv2.integral(image, sdepth=depth)
    seconds = []
    for _ in range(21):
        begin = time.perf_counter()
        cv2.integral(image, sums, sdepth=depth)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def cumulus(bench):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([bench, "--backend", "cpu", "--filter", "summed_area_table/", "--json", file.name],
                       check=True, stdout=subprocess.DEVNULL)
        rows = json.load(open(file.name))["rows"]
    return {row["name"]: row["median_us"] * 1e-6 for row in rows}


def main():
    bench = sys.argv[1]
    best = {}
    for _ in range(3):
        ours = cumulus(bench)
        for kind in KINDS:
            for side in SIDES:
                row = ours[f"summed_area_table/{kind}/{side}x{side}"]
                theirs = opencv(kind, side)
                old = best.get((kind, side), (row, theirs))
                best[kind, side] = (min(old[0], row), min(old[1], theirs))
    print(f"OpenCV {cv2.__version__}, {cv2.getNumThreads()} threads; milliseconds")
    print("| | side | Cumulus | OpenCV | ratio |\n|---|---|---|---|---|")
    for (kind, side), (row, theirs) in best.items():
        print(f"| {kind} | {side} | {row * 1e3:.2f} | {theirs * 1e3:.2f} | {theirs / row:.1f} |")


main()
