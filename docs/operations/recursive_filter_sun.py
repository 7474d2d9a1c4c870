#!/usr/bin/env python3
"""Draws docs/images/recursive_filter_sun.png: blurs of a map with a sun by `deriche` and by `fir`, and tells their errors.

    recursive_filter_sun.py CUMULUS MAP.exr PICTURE.png     (the program, with --server where it needs one; needs NumPy, SciPy and
                                                             Matplotlib)

Above the map as it is, below with its sun 100 times as bright: half floats end at 65504, suns do not. Left to right: the map, by
the default, by `fir`, and relative errors of the default. Negative pixels are magenta. Errors are as in recursive_filter_relative.py.
"""
import shlex
import sys

import matplotlib.image
import numpy as np

from recursive_filter_relative import cumulus, ours, scipys

SIGMA = 8
SUN = 1000  # brighter pixels are the sun's
HALF = 96  # of the part that is shown, around the sun
GAP = 4


def shown(image):
    """Four decades from 0.01 on, each as wide as the others; magenta where a channel is negative."""
    picture = np.clip((np.log10(np.maximum(image, 1e-6)) + 2) / 4, 0, 1)
    picture[(image < 0).any(axis=2)] = (1, 0, 1)
    return picture


def shown_errors(errors):
    """From 1e-4, black, to 1, white."""
    decades = np.clip((np.log10(np.maximum(errors.max(axis=2), 1e-9)) + 4) / 4, 0, 1)
    return np.repeat(decades[..., None], 3, axis=2)


def row_of(program, image, part):
    right = scipys(image.astype(np.float64), SIGMA, 12)
    pictures = [shown(image[part])]
    errors = {}
    for method in ("deriche", "fir"):
        blurred = ours(program, image, SIGMA, method)
        errors[method] = np.abs(blurred - right) / np.maximum(right, np.finfo(float).tiny)
        pictures.append(shown(blurred[part]))
        lit = errors[method][right > 0]
        print(f"brightest {image.max():.0f}, {method}: {(blurred < 0).sum()} negative elements in {(blurred < 0).any(axis=2).sum()} pixels, "
              f"relative error up to {lit.max():.1e}, {(lit > 0.01).sum()} elements above 0.01")
    pictures.append(shown_errors(errors["deriche"][part]))
    gap = np.ones((2 * HALF, GAP, 3))
    return np.concatenate([piece for picture in pictures for piece in (picture, gap)][:-1], axis=1)


def main():
    program, source, target = shlex.split(sys.argv[1]), sys.argv[2], sys.argv[3]
    image = np.maximum(cumulus(program, "filter", source, "--feedback=0").astype(np.float32), 0)  # as it is, but for lossy compression
    y, x, _ = np.unravel_index(image.argmax(), image.shape)
    part = (slice(y - HALF, y + HALF), slice(x - HALF, x + HALF))
    brighter = np.where(image > SUN, 100 * image, image)
    rows = [row_of(program, each, part) for each in (image, brighter)]
    gap = np.ones((GAP, rows[0].shape[1], 3))
    matplotlib.image.imsave(target, np.concatenate([rows[0], gap, rows[1]]), pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
