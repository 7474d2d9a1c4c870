"""`cumulus run-length coco-encode` of many masks beside cv2.imread and pycocotools' encode, whole processes, in turns.

    python3 bench/beside/coco_masks.py build/release/bin/cumulus [--masks 600] [--bar 1] [--json ROWS.json]

Needs numpy, opencv-python-headless and pycocotools; exits with 77 where they are missing. Both must give the same texts.
With --bar it fails where ours takes more than so many times as long as theirs, by the medians.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import cv2
    import numpy
    import pycocotools.mask  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}; scripts/python_env makes an environment that has it")
    sys.exit(77)

ROUNDS = 5
OTHER = """
import json, sys, cv2
from pycocotools import mask
texts = []
for path in sys.argv[2:]:
    picture = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
    run = mask.encode((picture > 0).astype("uint8", order="F"))
    texts.append({"size": run["size"], "counts": run["counts"].decode()})
json.dump(texts, open(sys.argv[1], "w"))
"""


def draw_masks(folder, count):
    """Blobs of some ellipses, 480 x 640, as segmentations are."""
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


def seconds_of(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("cumulus")
    arguments.add_argument("--masks", type=int, default=600)
    arguments.add_argument("--bar", type=float, help="the most that ours may take, in times of theirs")
    arguments.add_argument("--json")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        paths = draw_masks(folder, options.masks)
        ours = [options.cumulus, "--backend", "cpu", "run-length", "coco-encode", *paths, "-o", str(folder / "ours.json")]
        theirs = [sys.executable, "-c", OTHER, str(folder / "theirs.json"), *paths]
        rounds = [(seconds_of(ours), seconds_of(theirs)) for _ in range(ROUNDS + 1)][1:]
        texts = [json.loads((folder / f"{who}.json").read_text()) for who in ("ours", "theirs")]
        for own, other in zip(*texts):
            assert own["counts"] == other["counts"] and own["size"] == other["size"], own["file_name"]
    row = {"name": "coco-encode/cpu", "masks": options.masks,
           "cumulus_seconds": statistics.median(r[0] for r in rounds),
           "opencv_pycocotools_seconds": statistics.median(r[1] for r in rounds)}
    row["ratio"] = row["cumulus_seconds"] / row["opencv_pycocotools_seconds"]
    print(json.dumps(row))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps([row], indent=1) + "\n")
    if options.bar is not None and row["ratio"] > options.bar:
        sys.exit(f"coco-encode takes {row['ratio']:.2f} times as long as cv2 and pycocotools; {options.bar:g} is the bar")


main()
