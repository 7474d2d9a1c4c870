#!/usr/bin/env python3
"""Renders examples/path_tracer.cu by its three strategies, which have to agree, under a map whose sky it shows.

    check_path_tracer.py CUMULUS EXAMPLE

CUMULUS is the command line. Exits with 77, which means "skipped", where NumPy is not installed.
"""

import os
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    print("skipped: NumPy is not installed; Debian's package is python3-numpy")
    sys.exit(77)

HEIGHT, WIDTH = 64, 128


def light():
    """Blue above, brown below, and a sun of 4 texels' width behind the eye."""
    rgb = numpy.empty((HEIGHT, WIDTH, 3), numpy.float32)
    rgb[: HEIGHT // 2] = 0.3, 0.5, 0.9
    rgb[HEIGHT // 2 :] = 0.3, 0.2, 0.1
    rgb[18:22, 50:54] = 120, 110, 90
    return rgb


def read_pfm(path):
    with open(path, "rb") as file:
        kind, size, scale, data = file.read().split(b"\n", 3)
    assert kind == b"PF" and float(scale) == -1, (kind, scale)
    width, height = map(int, size.split())
    return numpy.frombuffer(data, "<f4").reshape(height, width, 3)[::-1]


def noise(picture, reference):
    return float(numpy.sqrt(numpy.mean((picture - reference) ** 2)))


def main(cumulus, example):
    with tempfile.TemporaryDirectory() as folder:
        def file(name):
            return os.path.join(folder, name)

        def render(samples, strategy):
            subprocess.run([example, file("sky.cst"), file("sky.npy"), file("out.pfm"), str(samples), strategy, "96"],
                           check=True)
            return read_pfm(file("out.pfm"))

        numpy.save(file("sky.npy"), light())
        subprocess.run([cumulus, "--backend", "cpu", "sampling-table", file("sky.npy"), "-o", file("sky.cst")], check=True,
                       stdout=subprocess.DEVNULL)
        reference = render(600, "mis")
        pictures = {strategy: render(150, strategy) for strategy in ("mis", "table", "bsdf")}
        assert reference.shape == (54, 96, 3)
        assert numpy.allclose(reference[0], light()[0, 0], rtol=1e-5), "the sky above is not the map's"
        for strategy, picture in pictures.items():
            ratio = picture.mean(axis=(0, 1)) / reference.mean(axis=(0, 1))
            print(strategy, "mean over the reference's", ratio, "noise", noise(picture, reference))
            assert numpy.all(abs(ratio - 1) < 0.02), strategy
        best = noise(pictures["mis"], reference)
        assert best < noise(pictures["table"], reference) and best < noise(pictures["bsdf"], reference) / 1.5
        wrong = subprocess.run([example, file("sky.npy"), file("sky.npy"), file("out.pfm")], capture_output=True, text=True)
        assert wrong.returncode == 1 and "sky.npy: " in wrong.stderr, wrong
        numpy.save(file("small.npy"), light()[1:])
        wrong = subprocess.run([example, file("sky.cst"), file("small.npy"), file("out.pfm")], capture_output=True, text=True)
        assert wrong.returncode == 1 and "64 x 128 texels" in wrong.stderr, wrong
        print("the three strategies agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
