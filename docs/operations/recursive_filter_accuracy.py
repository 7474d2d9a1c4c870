#!/usr/bin/env python3
"""How close Gaussians of `cumulus blur` come to the true one, next to SciPy's: makes the tables of recursive_filter.md.

    recursive_filter_accuracy.py CUMULUS      (the program; needs NumPy and SciPy)

Each row: the largest difference from the sampled Gaussian (or its derivative), over the largest value of that.
"""
import subprocess
import sys
import tempfile

import numpy as np
from scipy.ndimage import gaussian_filter1d

SIGMAS = [0.5, 0.7, 1, 2, 5, 10, 20, 50, 100, 200, 500]


def gaussian(x, sigma, derivative):
    """Sampled, the blur scaled to a sum of 1."""
    u = x / sigma
    g = np.exp(-u * u / 2) / (sigma * np.sqrt(2 * np.pi))
    if derivative == 0:
        return g / g.sum()
    return -u / sigma * g if derivative == 1 else (u * u - 1) / sigma**2 * g


def response(cumulus, folder, impulse, sigma, *options):
    """What the command makes of one row with a single 1."""
    np.save(f"{folder}/in.npy", impulse[np.newaxis, :])
    subprocess.run([cumulus, "blur", f"{folder}/in.npy", "-o", f"{folder}/out.npy", "--sigma", f"{sigma},0.5",
                    "--boundary", "zero,clamp", *options], check=True, stdout=subprocess.DEVNULL)
    return np.load(f"{folder}/out.npy")[0]


def main(cumulus):
    print("| sigma | deriche | young | SciPy | deriche, d/dx | SciPy, d/dx | deriche, d2/dx2 | SciPy, d2/dx2 |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for sigma in SIGMAS:
            reach = int(12 * sigma) + 20
            impulse = np.zeros(2 * reach + 1)
            impulse[reach] = 1
            x = np.arange(-reach, reach + 1)
            row = []
            for derivative in range(3):
                right = gaussian(x, sigma, derivative)
                ours = {"deriche": ["--derivative", f"{derivative},0"]}
                if derivative == 0:
                    ours["young"] = ["--method", "young"]
                results = [response(cumulus, folder, impulse, sigma, *options) for options in ours.values()]
                results.append(gaussian_filter1d(impulse, sigma, order=derivative, mode="constant"))
                row += [np.abs(result - right).max() / np.abs(right).max() for result in results]
            print(f"| {sigma} | " + " | ".join(f"{error:.1e}" for error in row) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
