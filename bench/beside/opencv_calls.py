#!/usr/bin/env python3
"""Times calls of the Python client on images that a cumulusd with the CPU backend has, beside OpenCV's functions, on as many threads.

    chrt -r 1 bench/beside/opencv_calls.py build/release --json bench/results/recursive_filter/NAME.json
    chrt -r 1 bench/beside/opencv_calls.py build/release --only box --json bench/results/summed_area_table/NAME.json

Needs NumPy, opencv-python and the client's package. A call is timed as its caller sees it and, in brackets, as the answer's `compute`
says, both with the look for NaN; OpenCV writes where it wrote before. In turns; each figure is the least and the median of its rounds,
and what comes of the two is compared. OpenCV's Gaussian is cut off at 4 sigma, its integral takes one thread.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import cv2
import numpy

from daemon import daemon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "src"))
import cumulus  # noqa: E402

SIZES = [(1024, 1024), (1080, 1920), (4096, 2048)]
CHANNELS = [1, 3, 4]
SIGMAS = [1, 2, 4, 8]
RADII = [2, 8, 32]
ROUNDS = 15
THREADS = 2


def subjects(client, image, resident):
    """Name, our call and theirs, and how far apart they may be, over the largest pixel."""
    if image.dtype == numpy.float32:
        for sigma in SIGMAS:
            blurred = numpy.empty_like(image)
            yield (f"gaussian, sigma {sigma}", lambda: client.blur(resident, sigma),
                   lambda: cv2.GaussianBlur(image, (0, 0), sigma, dst=blurred, borderType=cv2.BORDER_REPLICATE), 1e-3)
    means = numpy.empty(image.shape, numpy.float32)
    for radius in RADII:
        side = (2 * radius + 1, 2 * radius + 1)
        yield (f"box, radius {radius}", lambda: client.box_filter(resident, radius),
               lambda: cv2.boxFilter(image, cv2.CV_32F, side, dst=means, borderType=cv2.BORDER_REPLICATE), 1e-4)
    if image.dtype == numpy.uint8:
        height, width, *channels = image.shape
        sums = numpy.empty((height + 1, width + 1, *channels), numpy.int32)
        yield ("table", lambda: client.summed_area_table(resident, exclusive=True),
               lambda: cv2.integral(image, sums, sdepth=cv2.CV_32S), 0)


def difference(ours, theirs, image):
    array = ours.sums if hasattr(ours, "sums") else ours
    apart = numpy.abs(numpy.asarray(array.numpy(), numpy.float64) - theirs.reshape(array.shape))
    return float(apart.max() / image.max())


def row_of(client, call, opencv, allowed, image):
    apart = difference(call(), opencv(), image)
    assert apart <= allowed, f"{apart} of the largest pixel apart"
    times = {"call": [], "compute": [], "opencv": []}
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        result = call()
        times["call"].append(time.perf_counter() - begin)
        times["compute"].append(client.timings.compute)
        del result
        begin = time.perf_counter()
        opencv()
        times["opencv"].append(time.perf_counter() - begin)
    row = {f"{name}_seconds": min(seconds) for name, seconds in times.items()}
    row.update({f"{name}_median_seconds": statistics.median(seconds) for name, seconds in times.items()})
    return {**row, "largest_difference": apart}


def rows_of(client, only):
    random = numpy.random.default_rng(1)
    for element in (numpy.float32, numpy.uint8):
        for size in SIZES:
            for channels in CHANNELS:
                shape = size if channels == 1 else (*size, channels)
                image = random.random(shape, numpy.float32)
                image = image if element == numpy.float32 else (image * 255).astype(element)
                for name, call, opencv, allowed in subjects(client, image, client.upload(image)):
                    if not name.startswith(only):
                        continue
                    row = row_of(client, call, opencv, allowed, image)
                    mine, compute, theirs = (row[f"{kind}_seconds"] for kind in ("call", "compute", "opencv"))
                    print(f"{numpy.dtype(element).name} {shape} {name}: {mine * 1e3:.2f} ({compute * 1e3:.2f}) ms, OpenCV "
                          f"{theirs * 1e3:.2f} ms, {theirs / mine:.2f} ({theirs / compute:.2f})", flush=True)
                    yield {"type": numpy.dtype(element).name, "shape": shape, "operation": name, **row}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", help="the build folder, with bin/cumulusd")
    arguments.add_argument("--json", help="put the rows into this file")
    arguments.add_argument("--only", default="", metavar="OPERATION", help="gaussian, box or table alone")
    options = arguments.parse_args()
    cv2.setNumThreads(THREADS)
    with tempfile.TemporaryDirectory() as folder, daemon(options.build, folder, "cpu") as address:
        rows = list(rows_of(cumulus.connect(address), options.only))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"opencv": cv2.__version__, "threads": THREADS, "rounds": ROUNDS, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
