#!/usr/bin/env python3
"""How far Cumulus's answers are from those of other packages on the same data: the tables of docs/agreement.md.

    build/python_env/bin/python python/tests/agreement.py [--data FOLDER]

FOLDER has masks/hummer.png and points/bunny.ply, of which the columns of real data are made where it is there.
"""

import argparse
import pathlib
from typing import NamedTuple

import numpy as np
from conftest import ROOT, cumulus  # before the cases, as it finds the package
from agreement_cases import PEERS

RANDOM = np.random.default_rng(5)
DATA = ROOT.parent / "shared" / "data"


def generated():
    """Noise in [0, 1) and the like."""
    image = RANDOM.random((97, 131, 3), dtype=np.float32)
    return {"images": image, "pictures": (image * 256).astype(np.uint8), "points": RANDOM.random((5003, 3)).astype(np.float32),
            "masks": RANDOM.random((57, 83)) < 0.5}


def sky():
    """The part of the map with the sun in it, [256, 320, 3]."""
    import mitsuba as mi

    mi.set_variant("scalar_rgb")
    bitmap = mi.Bitmap(str(ROOT / "tests" / "data" / "sunrise.exr"))
    return np.array(bitmap.convert(mi.Bitmap.PixelFormat.RGB, mi.Struct.Type.Float32, False))[100:356, 500:820].copy()


def vertices(path):
    """Of a PLY file of float32 alone."""
    head, _, body = path.read_bytes().partition(b"end_header\n")
    count = int(head.split(b"element vertex ")[1].split()[0])
    return np.frombuffer(body, "<f4", 3 * count).reshape(count, 3)


def real(folder=DATA):
    """Of what is there."""
    image = sky()
    found = {"images": image, "pictures": (image.clip(0, 1) * 255).astype(np.uint8)}
    if (folder / "points" / "bunny.ply").exists():
        import cv2

        found["points"] = vertices(folder / "points" / "bunny.ply")
        found["masks"] = cv2.imread(str(folder / "masks" / "hummer.png"), cv2.IMREAD_UNCHANGED)[..., :3].max(axis=2) > 127
    return found


class Difference(NamedTuple):
    """The largest one, and the largest over the largest magnitude that the peer answers."""

    absolute: float
    relative: float

    def __str__(self):
        return f"{self.absolute:.1e}, {self.relative:.1e}" if self.absolute else "bit for bit"


def difference(pairs):
    """Of what both answer; infinite where shapes are not alike."""
    worst = Difference(0.0, 0.0)
    for ours, theirs in pairs:
        ours, theirs = (np.atleast_1d(np.asarray(each, np.float64)) for each in (ours, theirs))
        if ours.size != theirs.size:
            return Difference(np.inf, np.inf)
        absolute = float(np.abs(ours.ravel() - theirs.ravel()).max(initial=0))
        worst = max(worst, Difference(absolute, absolute and absolute / max(float(np.abs(theirs).max()), 1e-300)))
    return worst


def measure(case, client, *datasets):
    return [difference(case.answers(client, data[case.data])) if case.data in data else None for data in datasets]


def row_of(case, *figures):
    bound = f"{case.bound:.0e}" if case.bound else "0"
    cells = [f"`{case.theirs}`", f"`{case.ours}`", *("" if each is None else str(each) for each in figures), bound, case.why]
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    datasets = generated(), real(parser.parse_args().data)
    import importlib.metadata as metadata

    distributions = {"OpenCV": "opencv-python-headless"}
    with cumulus.connect(backend="cpu") as client:
        for peer, cases in PEERS.items():
            print(f"\n## {peer} {metadata.version(distributions.get(peer, peer))}\n")
            print("| theirs | ours | noise | real data | bound | why they differ |\n|---|---|---|---|---|---|")
            for case in cases:
                print(row_of(case, *measure(case, client, *datasets)), flush=True)


if __name__ == "__main__":
    main()
