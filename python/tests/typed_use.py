"""What docs/python.md shows, in a program that is checked by mypy --strict: it is typed, and not run."""

from pathlib import Path
from typing import Any, Tuple, Union

import cumulus
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Result = Union[npt.NDArray[Any], cumulus.Buffer]


def filtered(c: cumulus.Client, image: Floats) -> Tuple[npt.NDArray[Any], cumulus.Buffer]:
    small = c.blur(image, sigma=8, boundary=("repeat", "clamp"))
    resident = c.upload(image)
    return c.box_filter([[1.0, 2.0], [3.0, 4.0]], radius=1) + small, c.blur(resident, 8)


def rectangles(c: cumulus.Client, image: Floats) -> Any:
    table = c.summed_area_table(image, squares=True)
    table.sum([[0, 0, 512, 1024]])
    table.mean(((5, 5, 10, 20),))
    return table.variance(np.zeros((3, 4), np.int32))


def drawn(c: cumulus.Client, image: Floats, path: Path) -> npt.NDArray[Any]:
    sky = c.sampling_table(image, projection="lat-long")
    position, pdf, direction = sky.sample(4096, sequence="sobol")
    sky.save(path)
    again = cumulus.load(path)
    assert isinstance(again, cumulus.SamplingTable)
    return again.sample([[0.5, 0.5]]).position + position


def neighbours(c: cumulus.Client, points: npt.NDArray[np.float64]) -> Any:
    tree = c.kd_tree([[0.0, 0.0], [1.0, 0.0]])
    tree.query([[0.5, 0.5]], k=2)
    return tree.lists(points[:100], radius=0.1).of(0)


def in_one_call(c: cumulus.Client, image: Floats) -> Result:
    p = c.pipeline()
    blurred = p.blur(image, 3)
    table = p.sampling_table(blurred)
    got = p.run({"table": table.buffer, "samples": table.sample(1024).position, "means": p.box_filter(blurred, 4)}, timeout=3)
    return got["samples"]


def refused(c: cumulus.Client, image: Floats) -> Tuple[str, str]:
    try:
        c.blur(image, sigma=0.1, timeout=3, priority="batch")
    except cumulus.InvalidArgument as error:
        return error.field, error.cure
    return "", ""
