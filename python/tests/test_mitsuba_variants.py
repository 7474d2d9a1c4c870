"""cumulus_envmap in variants of Dr.Jit's arrays, by LLVM and on a GPU: bars of the comparison with envmap, and what docs/mitsuba.md says of it."""

import glob
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT

pytest.importorskip("mitsuba")
dr = pytest.importorskip("drjit")
DATA = ROOT.parent / "shared" / "data" / "hdri"


@pytest.fixture(scope="module")
def compiler():
    """LLVM 18 or newer: older ones end the process at code of Mitsuba's own."""
    named = os.environ.get("DRJIT_LIBLLVM_PATH")
    found = [named] if named else sorted(glob.glob("/usr/lib/x86_64-linux-gnu/libLLVM.so.*"))
    if not found:
        pytest.skip("there is no libLLVM.so of LLVM 18 or newer (apt install libllvm19), nor DRJIT_LIBLLVM_PATH")
    return found[-1]


def compare(compiler, client, variant, maps, *options):
    program = pathlib.Path(__file__).with_name("compare_envmaps.py")
    done = subprocess.run([sys.executable, program, variant, client.address, *options, *map(str, maps)], text=True, stdout=subprocess.PIPE,
                          check=True, env={**os.environ, **({"DRJIT_LIBLLVM_PATH": compiler} if compiler else {}),
                                           "PYTHONPATH": str(ROOT / "python" / "src")})
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(row):
    for drawn in (row["ours"], row["theirs"]):
        assert drawn["beyond"] < 1e-4 and 0.99 < drawn["pdf"][0] <= drawn["pdf"][1] < 1.01
    assert row["ours"]["own"] == [1, 1]
    assert abs(row["mean"] - 1) < 0.01 and row["noise"] < 1.2 and abs(row["rays"] - 1) < 0.03


def test_with_colours(compiler, client):
    (row,) = compare(compiler, client, "llvm_ad_rgb", [ROOT / "tests" / "data" / "sunrise.exr"])
    check(row)
    assert row["ours"]["deviation"] <= row["theirs"]["deviation"]


def test_with_spectra(compiler, client):
    (row,) = compare(compiler, client, "llvm_ad_spectral", [ROOT / "tests" / "data" / "sunrise.exr"], "--samples", "10000")
    assert row["ours"]["own"] == [1, 1] and abs(row["mean"] - 1) < 0.01 and abs(row["rays"] - 1) < 0.03


def test_on_a_gpu(client):
    if not dr.has_backend(dr.JitBackend.CUDA):
        pytest.skip("there is no GPU")
    (row,) = compare(None, client, "cuda_ad_rgb", [ROOT / "tests" / "data" / "sunrise.exr"])
    check(row)
    assert row["ours"]["light"] == pytest.approx(row["theirs"]["light"], rel=1e-3)
    assert row["ours"]["deviation"] <= row["theirs"]["deviation"]


def test_the_page_says_what_is_measured(compiler, client):
    maps = {path.stem: path for path in [ROOT / "tests" / "data" / "sunrise.exr", *DATA.glob("*.exr")]}
    page = (ROOT / "docs" / "mitsuba.md").read_text(encoding="utf-8")
    said = {name: [float(number) for number in re.findall(r"[0-9.]+", rest)]
            for name, rest in re.findall(r"^\| (\w+) \|(.*)\|$", page, re.MULTILINE) if name in maps}
    assert len(said) == 4
    names = [name for name in said if name in maps]
    for name, row in zip(names, compare(compiler, client, "llvm_ad_rgb", [maps[name] for name in names])):
        low, high, light, ours, theirs, *_ = said[name]
        check(row)
        assert row["ours"]["light"] == pytest.approx(light, rel=1e-3)
        assert [row[side]["deviation"] for side in ("ours", "theirs")] == pytest.approx([ours, theirs], rel=0.05)
        assert min(row[side]["pdf"][0] for side in ("ours", "theirs")) == pytest.approx(low, abs=5e-4)
        assert max(row[side]["pdf"][1] for side in ("ours", "theirs")) == pytest.approx(high, abs=5e-4)
