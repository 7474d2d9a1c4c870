#!/usr/bin/env python3
"""Reads tables of `cumulus sampling-table` with NumPy: the file itself, memory-mapped, and every export.

    check_sampling_table.py CUMULUS MAP

CUMULUS is the command line, MAP a lat-long image. All must have the densities of `cumulus evaluate-density`. Exits
with 77, which means "skipped", where NumPy is not installed.
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


def map_table(path):
    """The probability of each texel, of the file's own bytes, which the operating system pages in as they are used."""
    header = numpy.memmap(path, dtype="<u4", mode="r", shape=64)
    width, height = int(header[6]), int(header[7])
    offsets = numpy.memmap(path, dtype="<u8", mode="r", shape=32)
    marginal = numpy.memmap(path, dtype="<u4", mode="r", offset=int(offsets[8]), shape=height)
    rows = numpy.memmap(path, dtype="<u4", mode="r", offset=int(offsets[10]), shape=(height, width))

    def masses(bounds):
        whole = numpy.uint64(1 << 32)
        ends = numpy.concatenate([bounds[..., 1:], numpy.full(bounds.shape[:-1] + (1,), 0xFFFFFFFF, "u4")], axis=-1)
        below = numpy.where(bounds == 0xFFFFFFFF, whole, bounds.astype("u8"))
        return (numpy.where(ends == 0xFFFFFFFF, whole, ends.astype("u8")) - below) / 2.0**32

    return masses(numpy.asarray(marginal))[:, None] * masses(numpy.asarray(rows))


def main(cumulus, picture):
    def run(*arguments):
        subprocess.run([cumulus, "--backend", "cpu", *arguments], check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as folder:
        def file(name):
            return os.path.join(folder, name)

        run("sampling-table", picture, "-o", file("map.cst"))
        for name in ("npz", "pbrt", "mitsuba"):
            run("sampling-table", file("map.cst"), "--export", name, "-o", file(name + ".npz"))
        run("sampling-table", picture, "--export", "npz", "-o", file("direct.npz"))

        plain = numpy.load(file("npz.npz"))
        height, width = plain["function"].shape
        v, u = numpy.mgrid[0:height, 0:width]
        middles = numpy.stack([(u + 0.5) / width, (v + 0.5) / height], axis=-1).reshape(-1, 2)
        numpy.save(file("middles.npy"), middles)
        run("evaluate-density", file("map.cst"), file("middles.npy"), "-o", file("pdf.npy"))
        pdf = numpy.load(file("pdf.npy")).reshape(height, width).astype(float)
        size = plain["texel_size"][:, None]
        assert abs((pdf * size).sum() - 1) < 1e-6, "the densities do not integrate to 1"

        def check(what, probability):
            worst = numpy.max(numpy.abs(probability / size - pdf) / numpy.where(pdf > 0, pdf, 1))
            print(f"{what}: within {worst:.1e} of evaluate-density")
            assert worst < 1e-6, what

        check("map.cst, memory-mapped", map_table(file("map.cst")))
        check("npz, function", plain["function"] / (width * height))
        check("npz, cdf", numpy.diff(plain["marginal_cdf"])[:, None] * numpy.diff(plain["conditional_cdf"], axis=1))
        for name in plain.files:
            assert numpy.array_equal(plain[name], numpy.load(file("direct.npz"))[name]), name
        pbrt = numpy.load(file("pbrt.npz"))
        check("pbrt", pbrt["conditional_func"].astype(float) / pbrt["marginal_func_int"] / (width * height))
        check("mitsuba", numpy.load(file("mitsuba.npz"))["pdf"].astype(float) / (width * height))


main(*sys.argv[1:])
