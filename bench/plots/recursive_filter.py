#!/usr/bin/env python3
"""Draws the ladder of algorithms of Nehab et al. (2011), throughput against size, as an SVG, from results of cumulus_bench.

    cumulus_bench --backend cuda --filter recursive_filter/cubic-zero --json FILE
    bench/plots/recursive_filter.py FILE... -o docs/images/recursive_filter_ladder.svg
"""
import json
import math
import re

import log_plot

# Way: label, colour, dashes.
SERIES = {
    "lines/": ("a thread a line (RT)", "#888888", ""),
    "algorithm-2/": ("algorithm 2", "#e0a030", ""),
    "algorithm-4/": ("algorithm 4", "#d1495b", ""),
    "algorithm-5/": ("algorithm 5 (tiled)", "#2a9d4a", ""),
    "": ("as the server chooses", "#1f5fbf", ""),
}
NAME = re.compile(r"recursive_filter/cubic-zero/((?:[a-z]+(?:-\d)?/)?)(\d+)x\2$")
MARKS = {9: "1 Gpx/s", 10: "10 Gpx/s", 11: "100 Gpx/s", 12: "1 Tpx/s"}


def read_points(files):
    """way -> {log2 of the side: pixels a second}, and under "copy" those of a copy of the same bytes"""
    points = {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        for row in rows:
            match = NAME.match(row["name"])
            if match and match[1] in SERIES and row["backend"] == "cuda" and row["verified"]:
                side = int(match[2])
                points.setdefault(match[1], {})[math.log2(side)] = side * side / row["median_us"] * 1e6
                points.setdefault("copy", {})[math.log2(side)] = side * side / row["copy_us"] * 1e6
    return points


def draw(points):
    sizes = sorted(points["copy"])
    ticks = {n: f"{2 ** n:.0f} x {2 ** n:.0f}" for n in sizes}
    lines = [("a copy", "#bbbbbb", "6 4", points["copy"])]
    lines += [(*SERIES[way], points[way]) for way in reversed(SERIES) if way in points]
    return log_plot.draw(lines, ticks, "pixels", MARKS)


if __name__ == "__main__":
    log_plot.main(__doc__, lambda files: draw(read_points(files)))
