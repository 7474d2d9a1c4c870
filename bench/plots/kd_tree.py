#!/usr/bin/env python3
"""Draws the time of a KD-tree's build against the number of points, or of threads, as an SVG.

    bench/beside/scikit_learn.py build/release --json FILE
    bench/plots/kd_tree.py FILE -o docs/images/kd_tree_times.svg
    bench/plots/kd_tree.py FILE --against threads -o docs/images/kd_tree_threads.svg
"""
import argparse
import json
import math
import re

import log_plot

# what stands between "kd_tree_build/" and the number of points: label, colour, dashes
OF_POINTS = {
    "scikit-learn/uniform/leaf-40": ("scikit-learn, FLOAT64, leaves of 40", "#d1495b", ""),
    "f64-3d/uniform/leaf-40/threads-1": ("Cumulus likewise, one thread", "#1f5fbf", ""),
    "f64-3d/uniform-round-robin/leaf-40/threads-1": ("round robin", "#1f5fbf", "6 4"),
    "f64-3d/uniform/leaf-40/threads-2": ("two threads", "#6fa8dc", ""),
    "f64-3d/uniform-round-robin/leaf-40/threads-2": ("two threads, round robin", "#6fa8dc", "6 4"),
    "nanoflann/uniform/leaf-10": ("nanoflann, FLOAT32, leaves of 10", "#e0a030", ""),
    "f32-3d/uniform/leaf-10/threads-1": ("Cumulus likewise, one thread", "#2a9d4a", ""),
    "f32-3d/uniform/leaf-10/threads-2": ("two threads", "#93c47d", ""),
}
NAME = re.compile(r"kd_tree_build/(.+)/(\d+)$")
OF_THREADS = re.compile(r"f32-3d/uniform/leaf-10/threads-(\d+)$")
# number of points: colour
SIZES = {10_000: "#888888", 100_000: "#1f5fbf", 1_000_000: "#2a9d4a", 10_000_000: "#8e44ad"}


def read_times(files):
    """(what, number of points) -> microseconds"""
    times = {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        for row in rows:
            match = NAME.match(row["name"])
            if match and row["backend"] == "cpu" and row["verified"]:
                times[match[1], int(match[2])] = row["median_us"]
    return times


def against_points(times):
    lines = [(*how, {math.log10(size): time for (what, size), time in times.items() if what == series})
             for series, how in OF_POINTS.items()]
    sizes = [n for *_, line in lines for n in line]
    ticks = {n: f"10^{n}" for n in range(math.ceil(min(sizes)), math.floor(max(sizes)) + 1)}
    return [line for line in lines if line[-1]], ticks, "points, uniform, in three dimensions"


def against_threads(times):
    lines = []
    for size, colour in SIZES.items():
        line = {math.log2(int(OF_THREADS.match(what)[1])): time for (what, points), time in times.items()
                if points == size and OF_THREADS.match(what)}
        if len(line) < 2:
            continue
        exponent = round(math.log10(size))
        lines.append((f"Cumulus, 10^{exponent} points", colour, "", line))
        if ("nanoflann/uniform/leaf-10", size) in times:
            one = times["nanoflann/uniform/leaf-10", size]
            lines.append((f"nanoflann, 10^{exponent} points, one thread", colour, "2 3", dict.fromkeys(line, one)))
    most = max(n for *_, line in lines for n in line)
    ticks = {n: str(1 << n) for n in range(math.floor(most) + 1)}
    return lines, ticks, "threads; FLOAT32, uniform, in three dimensions, leaves of 10"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON files")
    parser.add_argument("--against", choices=["points", "threads"], default="points")
    parser.add_argument("-o", "--output", required=True, help="SVG to write")
    arguments = parser.parse_args()
    times = read_times(arguments.results)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(log_plot.draw(*(against_points if arguments.against == "points" else against_threads)(times)))


if __name__ == "__main__":
    main()
