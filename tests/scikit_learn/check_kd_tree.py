#!/usr/bin/env python3
"""Compares trees of `cumulus kd-tree build` with those that scikit-learn builds of the same points.

    check_kd_tree.py CUMULUS DOCS [BACKEND]

CUMULUS is the command line, DOCS is docs/operations/kd_tree.md, whose snippets load the trees and search a left-balanced
layout. Exits with 77, which means "skipped", where scikit-learn is not installed.
"""

import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    import sklearn
    from sklearn.neighbors import KDTree
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed; scripts/setup --scikit-learn installs it")
    sys.exit(77)


def clouds():
    """(name, points, leaf size)"""
    random = numpy.random.default_rng(1)
    yield "uniform", random.random((5003, 3)), 40
    yield "uniform, float32", random.random((20011, 3), dtype=numpy.float32), 40
    yield "clustered", numpy.exp(3 * random.normal(size=(3001, 2))), 7
    yield "16 dimensions", random.normal(size=(1500, 16)), 20
    yield "leaves of one point", random.random((777, 3)), 1
    yield "duplicates", random.integers(0, 3, size=(2000, 5)).astype(float), 10
    zeros = random.integers(0, 2, size=(1000, 2)).astype(float)
    yield "zeros of both signs", numpy.where(random.random(zeros.shape) < 0.5, zeros, -zeros), 5
    yield "all equal", numpy.full((500, 3), 0.1), 16
    yield "a line", numpy.linspace([0, 0, 1], [1, 2, 1], 1023), 8
    for points in (1, 2, 3, 80, 81, 82, 161):
        yield f"{points} points", random.random((points, 3)), 40


def snippet(docs, part):
    """The lines of the docs' Python snippet that has this part."""
    with open(docs, encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    for block in blocks:
        if part in block:
            return block
    sys.exit(f"{docs} has no Python snippet with {part}")


def differences(ours, theirs):
    """What differs between the arrays of two KDTrees; -0 and 0 are equal."""
    data, order, nodes, bounds = (numpy.asarray(array) for array in ours.get_arrays())
    their_data, their_order, their_nodes, their_bounds = (numpy.asarray(array) for array in theirs.get_arrays())
    if not numpy.array_equal(data, their_data):
        yield "data"
    for field in ("idx_start", "idx_end", "is_leaf"):
        if not numpy.array_equal(nodes[field], their_nodes[field]):
            yield field
    # scikit-learn's radius is a power of 1/2, ours a square root: they may differ in the last bit.
    if numpy.any(numpy.abs(nodes["radius"] - their_nodes["radius"]) > numpy.spacing(their_nodes["radius"])):
        yield "radius"
    if not numpy.array_equal(bounds, their_bounds):
        yield "node_bounds"
    for node in their_nodes[their_nodes["is_leaf"] == 1]:
        part = slice(node["idx_start"], node["idx_end"])
        if not numpy.array_equal(numpy.sort(order[part]), numpy.sort(their_order[part])):
            yield f"the points of the leaf from {node['idx_start']} on"
            return


def check(cumulus, loading, folder, points, leaf_size):
    """What differs between the two libraries' trees of these points and in their answers."""
    names = {name: os.path.join(folder, name) for name in ("points.npy", "queries.npy", "bunny.npz", "found.npz")}
    numpy.save(names["points.npy"], points)
    subprocess.run(cumulus + ["kd-tree", "build", names["points.npy"], "--leaf-size", str(leaf_size),
                              "-o", names["bunny.npz"]], check=True, stdout=subprocess.DEVNULL)
    loaded = {"numpy": numpy, "KDTree": KDTree}
    exec(loading.replace("bunny.npz", names["bunny.npz"]), loaded)
    theirs = KDTree(points, leaf_size=leaf_size)
    yield from differences(loaded["tree"], theirs)

    nearest = min(5, len(points))
    queries = numpy.random.default_rng(2).normal(size=(200, points.shape[1]))
    queries[:len(points) // 2] = points[:len(points) // 2][:len(queries)]
    distances, indices = theirs.query(queries, k=nearest)
    our_distances, our_indices = loaded["tree"].query(queries, k=nearest)
    if not numpy.array_equal(distances, our_distances):
        yield "query's distances"
    radius = numpy.median(distances)
    if not numpy.array_equal(theirs.query_radius(queries, radius, count_only=True),
                             loaded["tree"].query_radius(queries, radius, count_only=True)):
        yield "query_radius's counts"

    numpy.save(names["queries.npy"], queries)
    subprocess.run(cumulus + ["kd-tree", "query", names["bunny.npz"], names["queries.npy"], "-k", str(nearest),
                              "-o", names["found.npz"]], check=True, stdout=subprocess.DEVNULL)
    with numpy.load(names["found.npz"]) as found:
        if not numpy.array_equal(distances, found["distances"]):
            yield "distances of kd-tree query"
        apart = numpy.all(numpy.diff(distances, axis=1) > 0, axis=1)  # queries whose neighbours have one order only
        if not numpy.array_equal(indices[apart, :-1], found["indices"][apart, :-1]):
            yield "indices of kd-tree query"

    subprocess.run(cumulus + ["kd-tree", "query", names["bunny.npz"], names["queries.npy"], "--radius", repr(float(radius)),
                              "--lists", "-o", names["found.npz"]], check=True, stdout=subprocess.DEVNULL)
    with numpy.load(names["found.npz"]) as found:
        lists = numpy.split(found["indices"], found["offsets"][1:-1])
        if not all(numpy.array_equal(numpy.sort(ours), numpy.sort(right))
                   for ours, right in zip(lists, theirs.query_radius(queries, radius))):
            yield "lists of kd-tree query"


def check_compressed(cumulus, folder):
    """Whether points of numpy.savez_compressed give the same tree as those of numpy.save."""
    points = numpy.random.default_rng(5).integers(0, 100, size=(5000, 3)).astype(numpy.float32)
    numpy.save(os.path.join(folder, "plain.npy"), points)
    numpy.savez_compressed(os.path.join(folder, "compressed.npz"), points=points)
    trees = []
    for name in ("plain.npy", "compressed.npz"):
        tree = os.path.join(folder, f"tree of {name}.npz")
        subprocess.run(cumulus + ["kd-tree", "build", os.path.join(folder, name), "-o", tree],
                       check=True, stdout=subprocess.DEVNULL)
        with open(tree, "rb") as file:
            trees.append(file.read())
    if trees[0] != trees[1]:
        yield "trees"


def check_left_balanced(cumulus, searching, folder):
    """Whether the docs' search of a left-balanced layout finds what scikit-learn finds."""
    points = numpy.random.default_rng(3).random((3001, 3))
    queries = numpy.random.default_rng(4).random((200, 3))
    names = [os.path.join(folder, name) for name in ("points.npy", "layout.npz")]
    numpy.save(names[0], points)
    subprocess.run(cumulus + ["kd-tree", "build", names[0], "--left-balanced", "-o", names[1]],
                   check=True, stdout=subprocess.DEVNULL)
    with numpy.load(names[1]) as layout:
        loaded = {"numpy": numpy, "points": layout["points"], "idx_array": layout["idx_array"]}
    exec(searching, loaded)
    found = [loaded["nearest"](query)[1] for query in queries]
    if not numpy.array_equal(found, KDTree(points).query(queries)[1][:, 0]):
        yield "indices of the docs' search"


def main():
    cumulus = [sys.argv[1], "--backend", sys.argv[3] if len(sys.argv) > 3 else "cpu"]
    loading = snippet(sys.argv[2], "bunny.npz")
    searching = snippet(sys.argv[2], "def nearest")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, points, leaf_size in clouds():
            found = list(check(cumulus, loading, folder, points, leaf_size))
            failed = failed or bool(found)
            print(f"{name}: {'differ: ' + ', '.join(found) if found else 'the same'}")
        for name, wrong in (("left-balanced layout", list(check_left_balanced(cumulus, searching, folder))),
                            ("compressed points", list(check_compressed(cumulus, folder)))):
            failed = failed or bool(wrong)
            print(f"{name}: {'differ: ' + wrong[0] if wrong else 'the same'}")
    print(f"scikit-learn {sklearn.__version__}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
