#!/usr/bin/env python3
"""Measures how long scikit-learn takes for the KD-trees that cumulus_bench builds, in its rows' form.

    bench/kd_tree_scikit_learn.py --json FILE        (scripts/setup --scikit-learn)
"""
import argparse
import json
import sys
import time

import numpy
import sklearn
from sklearn.neighbors import KDTree


def clustered(random, points):
    """Ten clusters of very different spreads, as tests/cases/kd_tree_case.h has them."""
    cluster = random.integers(0, 10, points)
    centre = ((cluster[:, None] * 7 + numpy.arange(3) * 5) % 11) / 11
    return centre + (random.random((points, 3)) + random.random((points, 3)) - 1) * 0.25 / 2.0 ** cluster[:, None]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", required=True, help="write the rows to this file")
    arguments.add_argument("--runs", type=int, default=5, help="of each build")
    arguments.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    options = arguments.parse_args()
    rows = []
    for size in options.sizes:
        random = numpy.random.default_rng(1)
        for pattern, points in (("uniform", random.random((size, 3))), ("clustered", clustered(random, size))):
            seconds = []
            for _ in range(options.runs):
                start = time.perf_counter()
                KDTree(points, leaf_size=40)
                seconds.append(time.perf_counter() - start)
            seconds.sort()
            rows.append({"name": f"kd_tree_build/scikit-learn/{pattern}/leaf-40/{size}", "backend": "cpu",
                         "samples": options.runs, "median_us": seconds[options.runs // 2] * 1e6, "fastest_us": seconds[0] * 1e6,
                         "items_per_s": size / seconds[options.runs // 2], "unit": "points", "verified": True,
                         "verified_by": "nothing: another library, for comparison"})
            print(rows[-1]["name"], f"{seconds[0]:.3f} s")
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"command": " ".join(["bench/kd_tree_scikit_learn.py", *sys.argv[1:]]), "devices": [f"cpu: scikit-learn {sklearn.__version__}, one thread"],
                   "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
