#!/usr/bin/env python3
"""Draws time against the number of elements, as an SVG, from results of cumulus_bench.

    cumulus_bench --filter run_length/encode --json FILE
    bench/plot_run_length.py FILE... -o docs/images/run_length_times.svg
"""
import argparse
import json
import math
import re

WIDTH, HEIGHT = 840, 470
LEFT, RIGHT, TOP, BOTTOM = 70, 270, 20, 50
# way, backend: label, colour
SERIES = {
    ("encode-plain-loop", "cpu"): ("plain loop, one core", "#888888"),
    ("encode", "cpu"): ("Cumulus, CPU", "#2a9d4a"),
    ("encode-parle", "cuda"): ("PARLE, four passes", "#d1495b"),
    ("encode-cub", "cuda"): ("CUB", "#e0a030"),
    ("encode", "cuda"): ("Cumulus, CUDA", "#1f5fbf"),
}
PATTERNS = {"random-10": ("random", ""), "runs-of-4096": ("runs of 4096", "6 4")}
NAME = re.compile(r"run_length/(encode[a-z-]*)-u32-(.+)/2\^(\d+)$")


def read_points(files):
    """(way, backend, pattern) -> {log2 of n: microseconds}"""
    points = {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        for row in rows:
            match = NAME.match(row["name"])
            if match and match[2] in PATTERNS and row["verified"]:
                key = (match[1], row["backend"], match[2])
                points.setdefault(key, {})[int(match[3])] = row["median_us"]
    return points


def draw(points):
    sizes = [n for line in points.values() for n in line]
    times = [math.log10(t) for line in points.values() for t in line.values()]
    low_n, high_n = min(sizes), max(sizes)
    low_t, high_t = math.floor(min(times)), math.ceil(max(times))

    def x(n):
        return LEFT + (n - low_n) / (high_n - low_n) * (WIDTH - LEFT - RIGHT)

    def y(log_t):
        return HEIGHT - BOTTOM - (log_t - low_t) / (high_t - low_t) * (HEIGHT - TOP - BOTTOM)

    def text(at_x, at_y, words, anchor="middle"):
        return f'<text x="{at_x:.0f}" y="{at_y:.0f}" text-anchor="{anchor}">{words}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for n in range(low_n, high_n + 1, 4):
        out.append(f'<path d="M{x(n):.0f} {TOP}V{HEIGHT - BOTTOM}" stroke="#dddddd"/>')
        out.append(text(x(n), HEIGHT - BOTTOM + 18, f"2^{n}"))
    for log_t in range(low_t, high_t + 1):
        label = {0: "1 µs", 1: "10 µs", 2: "0.1 ms", 3: "1 ms", 4: "10 ms", 5: "0.1 s", 6: "1 s"}.get(log_t, "")
        out.append(f'<path d="M{LEFT} {y(log_t):.0f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        out.append(text(LEFT - 6, y(log_t) + 4, label, "end"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "32-bit elements"))
    at = TOP + 10
    for (way, backend), (label, colour) in SERIES.items():
        for pattern, (words, dashes) in PATTERNS.items():
            line = points.get((way, backend, pattern))
            if not line:
                continue
            path = "L".join(f"{x(n):.1f} {y(math.log10(t)):.1f}" for n, t in sorted(line.items()))
            style = f'stroke="{colour}" stroke-width="2" fill="none" stroke-dasharray="{dashes}"'
            out.append(f'<path d="M{path}" {style}/>')
            out.append(f'<path d="M{WIDTH - RIGHT + 10} {at - 4}h30" {style}/>')
            out.append(text(WIDTH - RIGHT + 46, at, f"{label}, {words}", "start"))
            at += 20
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON files of cumulus_bench")
    parser.add_argument("-o", "--output", required=True, help="SVG to write")
    arguments = parser.parse_args()
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(draw(read_points(arguments.results)))


if __name__ == "__main__":
    main()
