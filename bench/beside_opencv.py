"""What the scripts that time OpenCV beside cumulus_bench share."""
import json
import statistics
import subprocess
import tempfile
import time

ROUNDS = 3


def median_seconds(run, repeats=21):
    """Of one call, after a call that does not count."""
    run()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def cumulus_seconds(bench, rows):
    """The medians of cumulus_bench's rows on the CPU whose names contain `rows`, by name."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([bench, "--backend", "cpu", "--filter", rows, "--json", file.name],
                       check=True, stdout=subprocess.DEVNULL)
        report = json.load(open(file.name))["rows"]
    return {row["name"]: row["median_us"] * 1e-6 for row in report}


def best_of_rounds(bench, rows, subjects):
    """Runs both in turn, ROUNDS times. `subjects`: {key: (name of our row, function that times OpenCV)}.
    Returns {key: (our best median, OpenCV's best median)}."""
    best = {}
    for _ in range(ROUNDS):
        ours = cumulus_seconds(bench, rows)
        for key, (name, opencv) in subjects.items():
            pair = ours[name], opencv()
            best[key] = tuple(map(min, best.get(key, pair), pair))
    return best
