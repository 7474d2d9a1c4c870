"""The commands of docs/gallery.md run; and what it says to type in the place of other programs gives what those give."""

import importlib.machinery
import importlib.util
import json
import re
import shlex
import shutil
import subprocess

import numpy as np
import pytest
from conftest import PROGRAMS, ROOT

cv2 = pytest.importorskip("cv2")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")
pytest.importorskip("pycocotools")

from pycocotools import mask  # noqa: E402
from scipy import ndimage, spatial  # noqa: E402
from sklearn.neighbors import KDTree  # noqa: E402

PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


def test_pictures_commands_run(tmp_path, sunrise):
    loader = importlib.machinery.SourceFileLoader("gallery", str(ROOT / "scripts" / "gallery"))
    gallery = importlib.util.module_from_spec(importlib.util.spec_from_loader("gallery", loader))
    loader.exec_module(gallery)
    shown = re.findall(r"^cumulus (.*)$", PAGE.split("\n## Coming")[0], re.MULTILINE)
    assert shown == [command for _, _, commands, _, _ in gallery.ENTRIES for command in commands]
    data = ROOT.parent / "shared" / "data"
    if not data.exists():
        pytest.skip("the project's test data are not beside the project")
    gallery.prepare(tmp_path, data)
    for command in shown:
        gallery.run(command, PROGRAMS, tmp_path)


def tables():
    """Of each program its rows: what one types there, the command, and the call in Python, each the code in its cell."""
    for section in PAGE.split("\n## Coming from what you use today\n")[1].split("\n### ")[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")][2:]
        yield section.splitlines()[0], [[re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split(" | ")] for line in lines]


def commands_of(rows):
    """With what "the same with" leaves out: the options belong to the last command of the row before."""
    last = ""
    for _, command, *_ in rows:
        for code in command:
            last = f"{last} {code}" if code.startswith("--") else code
            yield last


def calls_of(rows):
    """What stands there for others, and the call: a keyword belongs to the row before, a method to the call beside it."""
    last = ""
    for theirs, _, ours in rows:
        calls = []
        for code in ours:
            if re.match(r"\w+=", code):
                calls.append(f"{last[:-1]}, {code})")
            elif code.startswith("."):
                calls[-1] += code
            elif re.match(r"(c|tree)\.", code):
                calls.append(code)
        if calls:
            last = calls[-1]
            yield theirs[0], calls[-1]


RANDOM = np.random.default_rng(21)
QUERIES = RANDOM.random((100, 3))


@pytest.fixture(scope="module")
def values(client):
    """What the calls name."""
    m = np.zeros((40, 60), np.uint8)
    m[5:30, 10:50] = 1
    p = RANDOM.random((2000, 3))
    image = RANDOM.integers(0, 256, (120, 160)).astype(np.uint8)
    return {"c": client, "cv2": cv2, "ndimage": ndimage, "spatial": spatial, "np": np, "mask": mask, "KDTree": KDTree,
            "image": image, "a": RANDOM.random((96, 128), dtype=np.float32), "p": p, "q": QUERIES, "m": m,
            "rle": mask.encode(np.asfortranarray(m)), "tree": client.kd_tree(p)}


@pytest.fixture(scope="module")
def folder(values, tmp_path_factory):
    """Where the files are that the commands name."""
    place = tmp_path_factory.mktemp("gallery")
    (place / "in.exr").symlink_to(ROOT / "tests" / "data" / "sunrise.exr")
    for frame in (1, 2):
        (place / f"in.{frame:04d}.exr").symlink_to(ROOT / "tests" / "data" / "sunrise.exr")
    cv2.imwrite(str(place / "in.png"), values["image"])
    cv2.imwrite(str(place / "m.png"), values["m"] * 255)
    for name in "apq":
        np.save(place / f"{name}.npy", values[name])
    (place / "instances.json").write_text(json.dumps({
        "images": [{"id": 1, "width": 60, "height": 40}], "categories": [{"id": 1, "name": "thing"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "area": 600, "bbox": [5, 5, 30, 20],
                         "segmentation": [[5, 5, 35, 5, 35, 25, 5, 25]]}]}))
    (place / "out").mkdir()
    return place


def run(words, folder):
    expanded = [name for word in words for name in (sorted(each.name for each in folder.glob(word)) if "*" in word else [word])]
    done = subprocess.run(expanded, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


@pytest.mark.parametrize("program", [name for name, _ in tables()])
def test_commands_run(program, client, folder, sunrise):
    commands = list(commands_of(dict(tables())[program]))
    assert len(commands) >= 3
    for command in commands:
        cumulus, *words = shlex.split(command)
        assert cumulus == "cumulus"
        run([str(PROGRAMS / "cumulus"), "--server", client.address, *words], folder)
        for output in re.findall(r"(?:-o|--squares) (\S+)", command):
            assert list(folder.glob(output.replace("{name}", "*"))), f"{command} wrote no {output}"


def test_oiiotool_has_these_options(folder):
    if not shutil.which("oiiotool"):
        pytest.skip("oiiotool is not installed")
    for (command,), *_ in dict(tables())["oiiotool"]:
        words = shlex.split(command)
        if "--frames" not in words:  # the same filter on a hundred files
            run(["oiiotool", "-i:ch=R", "in.exr", "--cut", "64x32", *words[2:]], folder)


def arrays(value):
    """The numbers of any of the results, as a list of arrays."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, tuple):
        return [each for part in value for each in arrays(part)]
    return [np.asarray(value)]


def same_tree(theirs, ours):
    """Each leaf has the same points, in an order of its own; all else is equal."""
    (data, order, nodes, bounds), (our_data, our_order, our_nodes, our_bounds) = theirs.get_arrays(), ours.get_arrays()
    leaves = [np.s_[each["idx_start"]:each["idx_end"]] for each in nodes if each["is_leaf"]]
    return (all(np.array_equal(*pair) for pair in ((data, our_data), (nodes, our_nodes), (bounds, our_bounds)))
            and all(sorted(order[leaf]) == sorted(our_order[leaf]) for leaf in leaves))


def plain(value):
    return {name: text.decode() if isinstance(text, bytes) else text for name, text in value.items()}


# Calls whose results are no arrays of the same form: how they compare, by what one types there.
SPECIAL = {
    "spatial.cKDTree(p).query_ball_point(q, 0.1)":
        lambda theirs, ours: all(sorted(one) == sorted(ours.of(i)[1]) for i, one in enumerate(theirs)),
    "spatial.cKDTree(p, boxsize=1)":
        lambda theirs, ours: all(sorted(one) == sorted(ours.of(i)[1])
                                 for i, one in enumerate(theirs.query_ball_point(QUERIES, 0.1))),
    "KDTree(p, leaf_size=40)": same_tree,
    "cv2.integral2(image)": lambda theirs, ours: (np.array_equal(theirs[0], ours.numpy())
                                                  and np.array_equal(theirs[1], ours.squares.numpy())),
    "tree.query_radius(q, 0.1, return_distance=True)":
        lambda theirs, ours: all(sorted(one) == sorted(ours.of(i)[1]) for i, one in enumerate(theirs[0])),
    "mask.encode(np.asfortranarray(m))": lambda theirs, ours: plain(theirs) == plain(ours),
}
# Largest difference of the rest, of values up to 1, or 255 for an image; exact without. Others cut a Gaussian off, and
# OpenCV's of bytes is in fixed point.
TOLERANCE = {"ndimage.gaussian_filter(a, 8)": 1e-4, "ndimage.gaussian_filter(a, 8, order=(0, 1))": 1e-4,
             "cv2.GaussianBlur(image, (0, 0), 8)": 2, "cv2.blur(image, (17, 17), borderType=cv2.BORDER_REFLECT)": 1.01,
             "ndimage.uniform_filter(a, 17)": 1e-5, "ndimage.spline_filter(a, 3)": 1e-5,
             "spatial.cKDTree(p).query(q, 8)": 1e-12, "tree.query(q, k=8)": 1e-12}


CALLS = [(program, *call) for program, rows in tables() if program != "oiiotool" for call in calls_of(rows)]


@pytest.mark.parametrize("program, theirs, ours", CALLS)
def test_calls_give_the_same(program, theirs, ours, values):
    expected = eval(theirs, {**values, "tree": KDTree(values["p"])})
    got = eval(ours, dict(values))
    if theirs in SPECIAL:
        assert SPECIAL[theirs](expected, got)
        return
    pairs = list(zip(arrays(expected), arrays(got)))
    assert len(pairs) == len(arrays(expected))
    for one, other in pairs:
        assert one.shape == other.shape
        assert np.abs(one.astype(float) - other).max() <= TOLERANCE.get(theirs, 0)


def test_every_row_is_tried():
    assert len(CALLS) >= 17
