#!/usr/bin/env python3
"""Times OpenCV's integral beside cumulus_bench on the same cores, for docs/operations/summed_area_table.md.

    taskset -c 0,1 bench/beside/opencv_integral.py build/release --json opencv_integral.json

Needs numpy and opencv-python. Both make the table with a first row and column of zeros, in memory that is there already; OpenCV
uses one core for that. Runs the two in turn, three times, and prints the best median of each. Before that it compares their
tables of one image.
"""
import functools

import cv2
import numpy

from opencv import made_by_cumulus, measure, median_seconds, options_of

KINDS = {
    "f32-f32": (numpy.float32, cv2.CV_32F, "float32"),
    "f32-f64": (numpy.float32, cv2.CV_64F, "float64"),
    "u8-u32": (numpy.uint8, cv2.CV_32S, "uint32"),
}


def image_of(kind, side):
    image = numpy.random.default_rng(1).random((side, side), dtype=numpy.float32)
    return image if KINDS[kind][0] == numpy.float32 else (image * 255).astype(numpy.uint8)


def opencv(kind, side, _):
    image = image_of(kind, side)
    sums = cv2.integral(image, sdepth=KINDS[kind][1])
    return median_seconds(lambda: cv2.integral(image, sums, sdepth=KINDS[kind][1]))


def compare(options, kind):
    """The largest difference, over the largest sum."""
    image = image_of(kind, 1000)
    theirs = cv2.integral(image, sdepth=KINDS[kind][1])
    ours = made_by_cumulus(options, image, "summed-area-table", "--exclusive", "--accumulator", KINDS[kind][2])
    difference = numpy.abs(ours.astype(numpy.float64) - theirs).max() / theirs.max()
    assert ours.shape == theirs.shape and difference < 1e-5, (kind, difference)
    return f"{difference:.1e}"


def main():
    options = options_of(__doc__)
    differences = {kind: compare(options, kind) for kind in KINDS}
    measure(options, {f"summed_area_table/{kind}-exclusive/{side}x{side}": (functools.partial(opencv, kind, side), differences[kind])
                      for kind in KINDS for side in options.sides})


main()
