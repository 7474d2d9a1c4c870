#!/usr/bin/env python3
"""Times OpenCV's GaussianBlur beside cumulus_bench on the same cores, for docs/operations/recursive_filter.md.

    taskset -c 0,1 bench/opencv_gaussian.py build/release/bench/cumulus_bench

Needs numpy and opencv-python. Both blur random float32 images of one channel; OpenCV chooses its kernel's size (4 sigma to
either side), and repeats the border pixel. Runs the two in turn, three times, and prints the best median of each.
"""
import functools
import sys

import cv2
import numpy

from beside_opencv import best_of_rounds, median_seconds

SIDES = (1024, 2048, 4096)
SIGMAS = (2, 8, 32)
METHODS = {"young": "gaussian-{}-clamp", "deriche": "deriche-{}-clamp"}


@functools.cache
def image(side):
    return numpy.random.default_rng(1).random((side, side), dtype=numpy.float32)


def opencv(sigma, side):
    blurred = numpy.empty_like(image(side))
    return median_seconds(
        lambda: cv2.GaussianBlur(image(side), (0, 0), sigma, blurred, borderType=cv2.BORDER_REPLICATE), repeats=7)


def main():
    subjects = {}
    for method, row in METHODS.items():
        for sigma in SIGMAS:
            for side in SIDES:
                name = f"recursive_filter/{row.format(sigma)}/{side}x{side}"
                subjects[method, sigma, side] = (name, functools.partial(opencv, sigma, side))
    best = best_of_rounds(sys.argv[1], "-clamp/", subjects)
    print(f"OpenCV {cv2.__version__}, {cv2.getNumThreads()} threads; milliseconds")
    print("| | sigma | side | Cumulus | OpenCV | ratio |\n|---|---|---|---|---|---|")
    for (method, sigma, side), (ours, theirs) in best.items():
        print(f"| {method} | {sigma} | {side} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {theirs / ours:.1f} |")


main()
