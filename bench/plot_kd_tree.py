#!/usr/bin/env python3
"""Draws the time of a KD-tree's build against the number of points and of threads, as an SVG.

    cumulus_bench --backend cpu --filter kd_tree_build --json FILE
    bench/kd_tree_scikit_learn.py --json OTHER
    bench/plot_kd_tree.py FILE OTHER -o docs/images/kd_tree_times.svg
"""
import argparse
import json
import math
import re

import log_plot

# what stands between "kd_tree_build/" and the number of points: label, colour, dashes
SERIES = {
    "scikit-learn/uniform/leaf-40": ("scikit-learn, FLOAT64, leaves of 40", "#d1495b", ""),
    "f64-3d/uniform/leaf-40": ("Cumulus, FLOAT64, leaves of 40, all threads", "#1f5fbf", ""),
    "f64-3d/uniform-round-robin/leaf-40": ("likewise, round robin", "#1f5fbf", "6 4"),
    "nanoflann/uniform/leaf-10": ("nanoflann, leaves of 10", "#e0a030", ""),
    "f32-3d/uniform/leaf-10/threads-1": ("Cumulus, leaves of 10, one thread", "#2a9d4a", ""),
    "f32-3d/uniform/leaf-10/threads-2": ("likewise, two threads", "#2a9d4a", "6 4"),
    "f32-3d/uniform/leaf-10/threads-16": ("likewise, 16 threads", "#2a9d4a", "2 3"),
}
NAME = re.compile(r"kd_tree_build/(.+)/(\d+)$")


def read_lines(files):
    """what -> {log10 of points: microseconds}"""
    lines = {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        for row in rows:
            match = NAME.match(row["name"])
            if match and row["backend"] == "cpu" and row["verified"]:
                lines.setdefault(match[1], {})[math.log10(int(match[2]))] = row["fastest_us"]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON files")
    parser.add_argument("-o", "--output", required=True, help="SVG to write")
    arguments = parser.parse_args()
    found = read_lines(arguments.results)
    lines = [(*how, found[what]) for what, how in SERIES.items() if what in found]
    sizes = [n for *_, line in lines for n in line]
    ticks = {n: f"10^{n}" for n in range(math.ceil(min(sizes)), math.floor(max(sizes)) + 1)}
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(log_plot.draw(lines, ticks, "points, uniform, in three dimensions"))


if __name__ == "__main__":
    main()
