#!/usr/bin/env python3
"""Times OpenCV's GaussianBlur beside cumulus_bench on the same cores, for docs/operations/recursive_filter.md.

    taskset -c 0,1 bench/beside/opencv_gaussian.py build/release --json opencv_gaussian.json

Needs numpy and opencv-python. Both blur float32 images and repeat the border pixel; OpenCV chooses its kernel's size (4 sigma to
either side). Runs the two in turn, three times, and prints the best median of each. Before that it compares what they make of
one image of noise.
"""
import functools

import cv2
import numpy

from opencv import made_by_cumulus, measure, median_seconds, options_of

SIGMAS = (2, 8, 32)
MOST_WITH_CHANNELS = 4096  # side of images with three
METHODS = {"young": "gaussian-{}-clamp", "deriche": "deriche-{}-clamp"}


@functools.cache
def image_of(side, channels):
    shape = (side, side) if channels == 1 else (side, side, channels)
    return numpy.random.default_rng(1).random(shape, dtype=numpy.float32)


@functools.cache  # both methods are compared with the same
def opencv(sigma, side, channels, _):
    image = image_of(side, channels)
    blurred = numpy.empty_like(image)
    return median_seconds(lambda: cv2.GaussianBlur(image, (0, 0), sigma, blurred, borderType=cv2.BORDER_REPLICATE))


def compare(options, method, sigma):
    """The largest difference between pixels of the two."""
    image = image_of(1000, 3)
    theirs = cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    ours = made_by_cumulus(options, image, "blur", "--sigma", str(sigma), "--method", method, "--boundary", "clamp")
    difference = numpy.abs(ours - theirs).max()
    assert difference < 0.01, (method, sigma, difference)
    return f"{difference:.1e}"


def main():
    options = options_of(__doc__)
    subjects = {}
    for method, row in METHODS.items():
        for sigma in SIGMAS:
            difference = compare(options, method, sigma)
            for side in options.sides:
                for channels in (1, 3) if side <= MOST_WITH_CHANNELS else (1,):
                    size = f"{side}x{side}" if channels == 1 else f"{side}x{side}x{channels}"
                    subjects[f"recursive_filter/{row.format(sigma)}/{size}"] = functools.partial(opencv, sigma, side, channels), difference
    measure(options, subjects)


main()
