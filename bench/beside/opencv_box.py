#!/usr/bin/env python3
"""Times the box filter of a cumulusd with the CPU backend beside OpenCV's, float means of both, on the same threads.

    bench/beside/opencv_box.py build/release --json bench/results/summed_area_table/NAME.json

Needs NumPy and opencv-python. Ours is `compute` of the answer, with the look for NaN; what comes of the two is compared. Each
figure is the least of its rounds, in turns. `chrt -r 1` before it keeps other programs out.
"""
import argparse
import json
import subprocess
import tempfile
import time

import cv2
import numpy

from daemon import daemon

SHAPES = [(1080, 1920, 3), (4096, 2048, 3), (1080, 1920), (4096, 2048)]
TYPES = {"f32": numpy.float32, "u8": numpy.uint8}
RADII = [2, 8, 32]
ROUNDS = 7
THREADS = 2


def ours(build, address, folder, radius):
    command = [f"{build}/bin/cumulus", "--server", address, "--json", "box-filter", f"{folder}/image.npy", "-o", f"{folder}/means.npy",
               "--radius", str(radius), "--boundary", "clamp"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)["server_seconds"]["compute"]


def theirs(image, radius):
    side = 2 * radius + 1
    begin = time.perf_counter()
    means = cv2.boxFilter(image, cv2.CV_32F, (side, side), borderType=cv2.BORDER_REPLICATE)
    return time.perf_counter() - begin, means


def rows_of(build, address, folder):
    for name, element in TYPES.items():
        for shape in SHAPES:
            image = (numpy.random.default_rng(1).random(shape) * 255).astype(element)
            numpy.save(f"{folder}/image.npy", image)
            for radius in RADII:
                times = [(ours(build, address, folder, radius), theirs(image, radius)[0]) for _ in range(ROUNDS)]
                difference = numpy.abs(numpy.load(f"{folder}/means.npy") - theirs(image, radius)[1]).max()
                assert difference < 1e-2, f"{name} {shape}, radius {radius}: {difference} of 255 apart"
                mine, opencv = (min(column) for column in zip(*times))
                print(f"{name} {shape} radius {radius}: {mine * 1e3:.2f} ms, OpenCV {opencv * 1e3:.2f} ms, {opencv / mine:.2f}", flush=True)
                yield {"type": name, "shape": shape, "radius": radius, "seconds": mine, "opencv_seconds": opencv,
                       "largest_difference": float(difference)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", help="the build folder, with bin/cumulus and bin/cumulusd")
    arguments.add_argument("--json", help="put the rows into this file")
    options = arguments.parse_args()
    cv2.setNumThreads(THREADS)
    with tempfile.TemporaryDirectory() as folder, daemon(options.build, folder, "cpu") as address:
        rows = list(rows_of(options.build, address, folder))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"opencv": cv2.__version__, "threads": THREADS, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
