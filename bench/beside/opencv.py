"""What the scripts that time OpenCV beside cumulus_bench share."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy

ROUNDS = 3


def options_of(description):
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", help="the build folder: its bench/cumulus_bench is timed, what its bin/cumulus makes is "
                                         "compared with what OpenCV makes")
    arguments.add_argument("--sides", type=int, nargs="+", default=[1024, 2048, 4096, 8192], help="of the square images")
    arguments.add_argument("--rows", default="", help="only those whose names contain this")
    arguments.add_argument("--json", help="put the rows into this file, beside others that it has")
    return arguments.parse_args()


def median_seconds(run, seconds=1.0):
    """Of one call, after a call that does not count, for about `seconds`."""
    run()
    samples = []
    while not samples or (sum(samples) < seconds and len(samples) < 21):
        begin = time.perf_counter()
        run()
        samples.append(time.perf_counter() - begin)
    return statistics.median(samples)


def made_by_cumulus(options, image, *command):
    """What `cumulus COMMAND` makes of an array."""
    with tempfile.TemporaryDirectory() as folder:
        numpy.save(f"{folder}/in.npy", image)
        subprocess.run([f"{options.build}/bin/cumulus", command[0], f"{folder}/in.npy", "-o", f"{folder}/out.npy",
                        *command[1:]], check=True, stdout=subprocess.DEVNULL)
        return numpy.load(f"{folder}/out.npy")


def measure(options, subjects):
    """Runs both in turn, ROUNDS times. `subjects`: {name of a row of cumulus_bench: (function that times OpenCV in a round, what to
    say of how far the results differ)}. Prints a table of the best medians and writes them."""
    subjects = {name: subject for name, subject in subjects.items() if options.rows in name}
    best = {}
    commit = device = ""
    for a_round in range(ROUNDS):
        for name, (opencv, _) in subjects.items():
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                subprocess.run([f"{options.build}/bench/cumulus_bench", "--backend", "cpu", "--filter", f"{name}$", "--json", file.name],
                               check=True, stdout=subprocess.DEVNULL)
                report = json.load(open(file.name, encoding="utf-8"))
            (row,) = report["rows"]
            if not row["verified"]:
                sys.exit(f"{name}: {row['difference']}")
            commit, device = report["commit"], report["devices"][0]
            pair = row["median_us"], opencv(a_round) * 1e6
            best[name] = tuple(map(min, best.get(name, pair), pair))
    peer = f"OpenCV {cv2.__version__}, {cv2.getNumThreads()} threads"
    print(f"{device}; {peer}; commit {commit}; milliseconds\n| | Cumulus | OpenCV | ratio | difference |\n|---|---|---|---|---|")
    rows = []
    for name, (ours, theirs) in best.items():
        difference = subjects[name][1]
        print(f"| {name} | {ours / 1e3:.2f} | {theirs / 1e3:.2f} | {theirs / ours:.2f} | {difference} |")
        rows.append({"name": name, "cumulus_us": round(ours, 1), "opencv_us": round(theirs, 1), "ratio": round(theirs / ours, 3),
                     "difference": difference, "commit": commit, "samples": f"best of {ROUNDS} medians"})
    if options.json:
        write(options.json, rows, [device, peer])


def write(path, rows, devices):
    path = pathlib.Path(path)
    before = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    new = {row["name"] for row in rows}
    rows = [row for row in before if row["name"] not in new] + rows
    command = f"taskset -c 0,1 bench/beside/{os.path.basename(sys.argv[0])} build/release --sides SIDE ... --json {path.name}"
    path.write_text(json.dumps({"command": command, "devices": devices, "rows": rows}, indent=1) + "\n", encoding="utf-8")
