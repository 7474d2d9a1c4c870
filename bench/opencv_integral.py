#!/usr/bin/env python3
"""Times OpenCV's integral beside cumulus_bench on the same cores, for docs/operations/summed_area_table.md.

    taskset -c 0,1 bench/opencv_integral.py build/release/bench/cumulus_bench

Needs numpy and opencv-python. Runs the two in turn, three times, and prints the best median of each.
"""
import functools
import sys

import cv2
import numpy

from beside_opencv import best_of_rounds, median_seconds

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
    return median_seconds(lambda: cv2.integral(image, sums, sdepth=depth))


def main():
    subjects = {(kind, side): (f"summed_area_table/{kind}/{side}x{side}", functools.partial(opencv, kind, side))
                for kind in KINDS for side in SIDES}
    best = best_of_rounds(sys.argv[1], "summed_area_table/", subjects)
    print(f"OpenCV {cv2.__version__}, {cv2.getNumThreads()} threads; milliseconds")
    print("| | side | Cumulus | OpenCV | ratio |\n|---|---|---|---|---|")
    for (kind, side), (row, theirs) in best.items():
        print(f"| {kind} | {side} | {row * 1e3:.2f} | {theirs * 1e3:.2f} | {theirs / row:.1f} |")


main()
