"""Filters of an EXR picture by `cumulus` beside `oiiotool`, whole processes from file to file, in turns.

    python3 bench/beside/oiiotool.py build/release/bin/cumulus [--picture tests/data/sunrise.exr] [--json ROWS.json]

Needs oiiotool. The picture is made 4096 x 2048 first, of half floats, compressed by zip. oiiotool cuts its Gaussian off at two
sigmas.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
FILTERS = {
    "gaussian, sigma 8": (["--blur", "32x32"], ["blur", "--sigma", "8"]),
    "box, radius 8": (["--blur:kernel=box", "17x17"], ["box-filter", "--radius", "8"]),
}


def seconds_of(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def row_of(name, ours, theirs):
    rounds = [(seconds_of(ours), seconds_of(theirs)) for _ in range(ROUNDS + 1)][1:]
    row = {"name": name, "cumulus_seconds": statistics.median(r[0] for r in rounds),
           "oiiotool_seconds": statistics.median(r[1] for r in rounds)}
    row["ratio"] = row["cumulus_seconds"] / row["oiiotool_seconds"]
    print(json.dumps(row), flush=True)
    return row


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("cumulus")
    arguments.add_argument("--picture", default="tests/data/sunrise.exr")
    arguments.add_argument("--json")
    options = arguments.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        source, ours, theirs = (str(pathlib.Path(name) / file) for file in ("in.exr", "ours.exr", "theirs.exr"))
        try:
            subprocess.run(["oiiotool", options.picture, "--resize", "4096x2048", "-d", "half", "--compression", "zip",
                            "-o", source], check=True)
        except FileNotFoundError:
            sys.exit("there is no oiiotool here; install openimageio-tools")
        for title, (their_words, our_words) in FILTERS.items():
            command, *more = our_words
            rows.append(row_of(f"{title}, EXR to EXR",
                               [options.cumulus, "--backend", "cpu", command, source, "-o", ours, *more],
                               ["oiiotool", source, *their_words, "-o", theirs]))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


main()
