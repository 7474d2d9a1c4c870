"""Drawing in numpy has the bits of cumulus/sampling.h, compiled here."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT


@pytest.fixture(scope="module")
def draw_points(tmp_path_factory):
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("draw")
    program = folder / "draw_points"
    subprocess.run([compiler, "-std=c++17", "-O2", f"-I{ROOT / 'kernels/sampling_table/include'}",
                    str(ROOT / "python/tests/draw_points.cc"), "-o", str(program)], check=True)

    def run(table, points, layer=0):
        (folder / "table.cst").write_bytes(table.table.tobytes())
        points.tofile(folder / "points")
        subprocess.run([str(program), "table.cst", "points", "out", str(layer)], cwd=folder, check=True)
        return np.fromfile(folder / "out", np.float32).reshape(-1, 8)

    return run


def weights(height, width, seed=3):
    """Skewed, with rows and columns of zeros."""
    random = np.random.default_rng(seed)
    sky = random.random((height, width), dtype=np.float32) ** 12
    sky[random.random((height, width)) < 0.2] = 0
    if height > 8:
        sky[5:7] = 0
        sky[:, -3:] = 0
        sky[height // 3, width // 2] = 1e5
    sky[-1, 0] = 0.5
    return sky


def test_points(count):
    """Evenly spread, and those at the ends of what 32 bits hold."""
    points = np.random.default_rng(4).integers(0, 1 << 32, (count, 2), dtype=np.uint32)
    points[:9] = [(a, b) for a in (0, 1, 0xFFFFFFFF) for b in (0, 1, 0xFFFFFFFE)]
    points[9:12] = [(0xFFFFFFFF, 0xFFFFFFFF), (0x80000000, 0x7FFFFFFF), (0xFFFFFFFE, 0x80000000)]
    return points


test_points.__test__ = False


def compare(draw_points, table, count, layer=0):
    here = table.local()
    points = test_points(count)
    theirs = draw_points(here, points, layer)
    ours = here.sample(points, layer=layer)
    assert np.array_equal(ours.position.view(np.uint32), theirs[:, :2].view(np.uint32))
    assert np.array_equal(ours.pdf.view(np.uint32), theirs[:, 2].view(np.uint32))
    if ours.direction is not None:
        assert np.array_equal(ours.direction.view(np.uint32), theirs[:, 3:6].view(np.uint32))
        assert np.array_equal(here.pdf(ours.direction, layer=layer), theirs[:, 7])
    assert np.array_equal(here.pdf(ours.position, layer=layer), theirs[:, 6])


def test_a_million_points_of_a_map(client, draw_points):
    compare(draw_points, client.sampling_table(weights(256, 512)), 10**6)


@pytest.mark.parametrize("method", ["cutpoint-binary", "binary-search", "alias"])
def test_methods(client, draw_points, method):
    compare(draw_points, client.sampling_table(weights(33, 67), method=method), 10**5)


@pytest.mark.parametrize("interpolation", ["constant", "bilinear"])
@pytest.mark.parametrize("projection, shape", [
    ("lat-long", (48, 96)), ("lat-long", (8, 5)), ("lat-long", (1, 9)), ("lat-long", (16, 1)), ("plane", (31, 64)),
    ("plane", (1, 1000)), ("equal-area", (32, 32))])
def test_projections_and_interpolations(client, draw_points, projection, shape, interpolation):
    table = client.sampling_table(weights(*shape), projection=projection, interpolation=interpolation)
    compare(draw_points, table, 10**5)


def test_layers(client, draw_points):
    layers = np.stack([weights(20, 40, seed) for seed in range(3)])
    for interpolation in ("constant", "bilinear"):
        table = client.sampling_table(layers, layered=True, interpolation=interpolation)
        for layer in range(3):
            compare(draw_points, table, 10**4, layer)


@pytest.mark.parametrize("sequence, options", [
    ("sobol", {}), ("sobol", {"seed": 7, "first_index": 1000}), ("hammersley", {"total": 9000}), ("hammersley", {}),
    ("random", {"seed": (1 << 63) + 5})])
def test_sequences_are_the_servers(client, sequence, options):
    table = client.sampling_table(weights(40, 80))
    there = table.sample(4096, sequence=sequence, **options)
    here = table.local().sample(4096, sequence=sequence, **options)
    for ours, theirs in zip(here, there):
        assert np.array_equal(ours, theirs)


def test_densities_are_the_servers(client):
    table = client.sampling_table(weights(40, 80))
    random = np.random.default_rng(8)
    positions = np.concatenate([random.random((5000, 2), dtype=np.float32),
                                np.array([[-1, 2], [np.nan, 0.5], [1, 1]], np.float32)])
    directions = random.normal(size=(5000, 3)).astype(np.float32)
    assert np.array_equal(table.pdf(positions), table.local().pdf(positions))
    assert np.array_equal(table.pdf(directions), table.local().pdf(directions))
