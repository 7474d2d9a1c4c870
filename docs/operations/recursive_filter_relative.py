#!/usr/bin/env python3
"""How far blurs of a picture are from the true Gaussian's, relative to each pixel: makes a table of recursive_filter.md.

    recursive_filter_relative.py CUMULUS MAP.exr ...     (the program, with --server where it needs one, and maps; needs NumPy and
                                                          SciPy)

The true blur is a sampled Gaussian out to 12 sigma, in double. Each row: the largest error of an element over that element, of
nine in ten the largest, and how many are below zero. Boundaries as of a lat-long map.
"""
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np
from scipy.ndimage import gaussian_filter1d

SIGMAS = [2, 8, 32]


def scipys(image, sigma, truncate):
    """In the image's type, rows wrapped around, columns clamped."""
    rows = gaussian_filter1d(image, sigma, axis=1, mode="wrap", truncate=truncate)
    return gaussian_filter1d(rows, sigma, axis=0, mode="nearest", truncate=truncate)


def cumulus(program, command, source, *options):
    """What a command makes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*program, command, source, "-o", f"{folder}/out.npy", *options], check=True, stdout=subprocess.DEVNULL)
        return np.load(f"{folder}/out.npy")


def ours(program, image, sigma, method):
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/in.npy", image)
        return cumulus(program, "blur", f"{folder}/in.npy", "--sigma", str(sigma), "--boundary", "repeat,clamp", "--method", method)


def main():
    program = shlex.split(sys.argv[1])
    print("| map, range | sigma | method | largest | 90 % | below 0 |\n|---|---|---|---|---|---|")
    for path in sys.argv[2:]:
        image = cumulus(program, "filter", path, "--feedback=0").astype(np.float32)  # as it is
        lit = image[image > 0]
        name = f"{os.path.basename(path)}, {lit.min():.1g} to {lit.max():.0f}"
        for sigma in SIGMAS:
            right = scipys(image.astype(np.float64), sigma, 12)
            blurs = {f"`{method}`": ours(program, image, sigma, method) for method in ("fir", "deriche", "young")}
            blurs |= {f"SciPy, truncate {t}": scipys(image, sigma, t) for t in (4, 8)}
            for method, blurred in blurs.items():
                error = np.abs(blurred - right)[right > 0] / right[right > 0]
                print(f"| {name} | {sigma} | {method} | {error.max():.1e} | {np.quantile(error, 0.9):.1e} | {(blurred < 0).sum()} |",
                      flush=True)


if __name__ == "__main__":
    main()
