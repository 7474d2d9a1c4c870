#!/usr/bin/env python3
"""Times the KD-trees of Cumulus on the CPU, of nanoflann and of scikit-learn by turns, in one run.

    bench/beside/scikit_learn.py build/release --json FILE        (scripts/setup --scikit-learn)

Rows are those of cumulus_bench, the best median of --rounds; rows that FILE has of other sizes stay in it.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import sklearn
from sklearn.neighbors import KDTree


def options_of_command_line():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", help="the build folder, with bench/cumulus_bench and bin/cumulus")
    arguments.add_argument("--json", required=True, help="put the rows into this file")
    arguments.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000], help="numbers of points")
    arguments.add_argument("--patterns", nargs="+", default=["uniform", "clustered"])
    arguments.add_argument("--clouds", nargs="*", default=[], help="files of points, for more rows")
    arguments.add_argument("--leaves", type=int, nargs="+", default=[10, 40],
                           help="10: FLOAT32 beside nanoflann; 40: FLOAT64 beside scikit-learn")
    arguments.add_argument("--rounds", type=int, default=3)
    return arguments.parse_args()


def clustered(random, points):
    """Ten clusters of very different spreads, as tests/cases/kd_tree_case.h has them."""
    cluster = random.integers(0, 10, points)
    centre = ((cluster[:, None] * 7 + numpy.arange(3) * 5) % 11) / 11
    return centre + (random.random((points, 3)) + random.random((points, 3)) - 1) * 0.25 / 2.0 ** cluster[:, None]


def points_of(build, cloud):
    """A file's points in their own order: a tree's file has them."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{build}/bin/cumulus", "--backend", "cpu", "kd-tree", "build", cloud, "-o", f"{folder}/tree.npz"],
                       check=True, stdout=subprocess.DEVNULL)
        return numpy.load(f"{folder}/tree.npz")["data"]


def row_of_scikit_learn(of, points):
    """As long as cumulus_bench takes for a row: about a second, but two builds at least."""
    seconds = []
    while len(seconds) < 2 or (sum(seconds) < 1 and len(seconds) < 21):
        begin = time.perf_counter()
        KDTree(points, leaf_size=40)
        seconds.append(time.perf_counter() - begin)
    median = statistics.median(seconds)
    return {"name": f"kd_tree_build/scikit-learn/{of}/leaf-40/{len(points)}", "backend": "cpu", "samples": len(seconds),
            "median_us": median * 1e6, "fastest_us": min(seconds) * 1e6, "items_per_s": len(points) / median, "unit": "points",
            "verified": True, "verified_by": "nothing: another library, for comparison"}


def points_of_row(name):
    """"4000x1000", trees of points, are many."""
    return math.prod(int(number) for number in name.rsplit("/", 1)[1].split("x"))


class Rows:
    def __init__(self, options):
        self.options = options
        self.best = {}
        self.commit = ""
        self.devices = []

    def take(self, row):
        if not row["verified"]:
            sys.exit(f"{row['name']}: {row['difference']}")
        before = self.best.get(row["name"])
        if before is None or row["median_us"] < before["median_us"]:
            self.best[row["name"]] = row

    def run_cumulus_bench(self, names, clouds):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            command = [f"{self.options.build}/bench/cumulus_bench", "--backend", "cpu", "--json", file.name, "--filter"]
            command += [f"{name}$" for name in names] + (["--cloud", *clouds] if clouds else [])
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            report = json.load(file)
        self.commit, self.devices = report["commit"], report["devices"]
        for row in report["rows"]:
            self.take(row)

    def measure(self, names, of, points, clouds=()):
        for _ in range(self.options.rounds):
            self.run_cumulus_bench(names, clouds)
            if 40 in self.options.leaves:
                self.take(row_of_scikit_learn(of, points))

    def write(self):
        path = pathlib.Path(self.options.json)
        before = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
        rows = [row for row in before if row["name"] not in self.best]
        rows += [{**row, "commit": self.commit, "samples": f"best median of {self.options.rounds} rounds"} for row in self.best.values()]
        rows.sort(key=lambda row: (points_of_row(row["name"]), row["name"]))
        said = {"command": f"bench/beside/scikit_learn.py build/release --sizes SIZE ... --clouds FILE ... --json {path.name}",
                "devices": self.devices + [f"cpu: scikit-learn {sklearn.__version__}, one thread"]}
        lines = ",\n".join("    " + json.dumps(row) for row in rows)
        head = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in said.items())
        path.write_text(f'{{\n{head},\n  "rows": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
        for row in rows:
            if row["name"] in self.best:
                print(f"{row['name']:70} {row['median_us'] / 1e3:10.2f} ms")


def names_of(leaves, pattern, size):
    """Rows of cumulus_bench, with each number of threads that it takes."""
    most = len(os.sched_getaffinity(0))
    numbers = sorted({min(1 << shift, most) for shift in range(most.bit_length() + 1)})
    names = [f"/nanoflann/{pattern}/leaf-10/{size}"] if 10 in leaves else []
    for leaf, splits in {10: [""], 40: ["", "-round-robin"]}.items():
        names += [f"{pattern}{split}/leaf-{leaf}/threads-{threads}/{size}" for split in splits for threads in numbers if leaf in leaves]
    return names


def main():
    options = options_of_command_line()
    rows = Rows(options)
    for size in options.sizes:
        for pattern in options.patterns:
            random = numpy.random.default_rng(1)
            points = random.random((size, 3)) if pattern == "uniform" else clustered(random, size)
            rows.measure(names_of(options.leaves, pattern, size), pattern, points)
    for cloud in options.clouds:
        of = pathlib.Path(cloud).stem
        points = points_of(options.build, cloud)
        rows.measure([f"/{of}/leaf-{leaf}/{len(points)}" for leaf in (10, 40)], of, points, [cloud])
    rows.write()


if __name__ == "__main__":
    main()
