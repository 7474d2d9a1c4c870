"""What `cumulus` does from file to file beside oiiotool, OpenCV and pycocotools: one run, whole processes, all of them in turns.

    taskset -c 0,1 build/python_env/bin/python bench/beside/peers.py build/release/bin/cumulus [--json ROWS.json]

Needs oiiotool, numpy, opencv-python-headless and pycocotools; exits with 77 where one is missing that is asked for. Each round runs
every program once; rows have the medians of the rounds' seconds and processor seconds (of the daemon too, which is a child of the
command). The first round does not count. Masks must give the same texts; oiiotool cuts its Gaussian off at two sigmas, OpenCV at
four. --peers chooses among the three; with --bar the run fails where ours takes more than so many times as long as a peer.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

Subject = collections.namedtuple("Subject", "name peer ours theirs")

OPENCV_FILTER = """
import sys, cv2
picture = cv2.imread(sys.argv[1], cv2.IMREAD_UNCHANGED)
clamp = cv2.BORDER_REPLICATE
result = cv2.GaussianBlur(picture, (0, 0), 8, borderType=clamp) if sys.argv[3] == "blur" else cv2.blur(picture, (17, 17), borderType=clamp)
cv2.imwrite(sys.argv[2], result)
"""
PYCOCOTOOLS = """
import json, sys, cv2
from pycocotools import mask
texts = []
for path in sys.argv[2:]:
    picture = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
    run = mask.encode((picture > 0).astype("uint8", order="F"))
    texts.append({"size": run["size"], "counts": run["counts"].decode()})
json.dump(texts, open(sys.argv[1], "w"))
"""


def missing(what, hint):
    print(f"skipped: {what}; {hint}")
    sys.exit(77)


def numpy_and_opencv():
    try:
        import cv2
        import numpy
        import pycocotools.mask  # noqa: F401
        return numpy, cv2
    except ImportError as error:
        missing(error, "scripts/python_env makes an environment that has it")


def draw_masks(folder, count):
    """Blobs of some ellipses, 480 x 640, as segmentations are."""
    numpy, cv2 = numpy_and_opencv()
    random = numpy.random.default_rng(1)
    paths = []
    for i in range(count):
        picture = numpy.zeros((480, 640), numpy.uint8)
        for _ in range(6):
            centre = tuple(int(x) for x in random.integers((100, 100), (540, 380)))
            axes = tuple(int(x) for x in random.integers(10, 120, 2))
            cv2.ellipse(picture, centre, axes, float(random.uniform(0, 180)), 0, 360, 255, -1)
        paths.append(str(folder / f"{i:05d}.png"))
        cv2.imwrite(paths[-1], picture)
    return paths


def make_map(path, options, *words):
    if shutil.which("oiiotool") is None:
        missing("there is no oiiotool here", "install openimageio-tools")
    subprocess.run(["oiiotool", options.picture, "--resize", "2048x1024", *words, "-o", str(path)], check=True)
    return str(path)


def beside_oiiotool(command, folder, options):
    """EXR to EXR, half floats compressed by zip."""
    source = make_map(folder / "map.exr", options, "-d", "half", "--compression", "zip")
    for name, words, theirs in (("gaussian, sigma 8", ["blur", "--sigma", "8"], ["--blur", "32x32"]),
                                ("box, radius 8", ["box-filter", "--radius", "8"], ["--blur:kernel=box", "17x17"])):
        yield Subject(f"{name}, EXR to EXR", "oiiotool", [*command, words[0], source, "-o", str(folder / "ours.exr"), *words[1:]],
                      ["oiiotool", source, *theirs, "-o", str(folder / "theirs.exr")])


def beside_opencv(command, folder, options):
    """PNG to PNG, 8 bits."""
    numpy_and_opencv()
    source = make_map(folder / "map.png", options, "-d", "uint8")
    for name, words in (("gaussian, sigma 8", ["blur", "--sigma", "8"]), ("box, radius 8", ["box-filter", "--radius", "8"])):
        yield Subject(f"{name}, PNG to PNG", "OpenCV", [*command, words[0], source, "-o", str(folder / "ours.png"), *words[1:]],
                      [sys.executable, "-c", OPENCV_FILTER, source, str(folder / "theirs.png"), words[0]])


def beside_pycocotools(command, folder, options):
    paths = draw_masks(folder, options.masks)
    yield Subject(f"coco-encode, {options.masks} masks", "OpenCV + pycocotools",
                  [*command, "run-length", "coco-encode", *paths, "-o", str(folder / "ours.json")],
                  [sys.executable, "-c", PYCOCOTOOLS, str(folder / "theirs.json"), *paths])


def compare_masks(folder):
    texts = [json.loads((folder / f"{who}.json").read_text()) for who in ("ours", "theirs")]
    assert len(texts[0]) == len(texts[1])
    for own, other in zip(*texts):
        assert own["counts"] == other["counts"] and own["size"] == other["size"], own["file_name"]


PEERS = {"oiiotool": beside_oiiotool, "opencv": beside_opencv, "pycocotools": beside_pycocotools}


def seconds_of(command):
    """On the clock, and of processors, those of its children too."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return elapsed, usage.ru_utime + usage.ru_stime


def measure(subjects, rounds):
    samples = collections.defaultdict(list)
    for a_round in range(rounds + 1):
        for subject in subjects:
            both = [("cumulus", subject.ours), ("peer", subject.theirs)]
            for who, command in both if a_round % 2 else reversed(both):
                times = seconds_of(command)
                if a_round > 0:
                    samples[subject.name, who].append(times)
    rows = []
    for subject in subjects:
        row = {"name": subject.name, "peer": subject.peer}
        for who in ("cumulus", "peer"):
            for what, values in zip(("seconds", "processor_seconds"), zip(*samples[subject.name, who])):
                row[f"{who}_{what}"] = round(statistics.median(values), 3)
        row["ratio"] = round(row["cumulus_seconds"] / row["peer_seconds"], 3)
        rows.append(row)
    return rows


def show(rows, rounds):
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, medians of {rounds} rounds, seconds (of processors)\n| | Cumulus | peer | ratio |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row['name']} | {row['cumulus_seconds']:.2f} ({row['cumulus_processor_seconds']:.2f}) | {row['peer']} "
              f"{row['peer_seconds']:.2f} ({row['peer_processor_seconds']:.2f}) | {row['ratio']:.2f} |")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("cumulus")
    arguments.add_argument("--picture", default="tests/data/sunrise.exr")
    arguments.add_argument("--masks", type=int, default=600)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    arguments.add_argument("--bar", type=float, help="the most that ours may take, in times of theirs")
    arguments.add_argument("--json")
    options = arguments.parse_args()
    command = [options.cumulus, "--backend", "cpu"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subjects = []
        for peer in options.peers:
            subjects += PEERS[peer](command, folder, options)
        rows = measure(subjects, options.rounds)
        if "pycocotools" in options.peers:
            compare_masks(folder)
    show(rows, options.rounds)
    if options.json:
        device = {"cores": len(os.sched_getaffinity(0)), "rounds": options.rounds}
        pathlib.Path(options.json).write_text(json.dumps({**device, "rows": rows}, indent=1) + "\n")
    for row in rows:
        if options.bar is not None and row["ratio"] > options.bar:
            sys.exit(f"{row['name']}: {row['ratio']:.2f} times as long as {row['peer']}; {options.bar:g} is the bar")


main()
