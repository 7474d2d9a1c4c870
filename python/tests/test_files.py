"""Files: to and from the command line, and what is refused."""

import cumulus
import numpy as np
import pytest

RANDOM = np.random.default_rng(7)


def test_sampling_tables(client, command_line, tmp_path, sunrise):
    command_line("sampling-table", sunrise, "-o", tmp_path / "theirs.cst")
    theirs = cumulus.load(tmp_path / "theirs.cst")
    ours = client.sampling_table(sunrise, invalid_weights="clamp")
    assert np.array_equal(ours.table, theirs.table)
    ours.save(tmp_path / "ours.cst")
    assert (tmp_path / "ours.cst").read_bytes() == (tmp_path / "theirs.cst").read_bytes()
    command_line("draw-samples", tmp_path / "ours.cst", "-n", 1000, "-o", tmp_path / "samples.npy")
    drawn = np.load(tmp_path / "samples.npy")
    here = theirs.sample(1000)
    assert np.array_equal(drawn["u"], here.position[:, 0]) and np.array_equal(drawn["pdf"], here.pdf)
    assert np.array_equal(theirs.to(client).sample(1000).direction, here.direction)


@pytest.mark.parametrize("options", [["--columns"], []])
def test_run_length_containers(client, command_line, tmp_path, options):
    array = np.repeat(RANDOM.integers(0, 3, (50, 20)), 7, axis=1).astype(np.uint16)
    np.save(tmp_path / "array.npy", array)
    command_line("run-length", "encode", tmp_path / "array.npy", "-o", tmp_path / "theirs.rle", *options)
    theirs = cumulus.load(tmp_path / "theirs.rle")
    assert np.array_equal(theirs.numpy(), array)
    ours = client.run_length(array, order="by-columns" if options else "by-rows")
    ours.save(tmp_path / "ours.rle")
    assert (tmp_path / "ours.rle").read_bytes() == (tmp_path / "theirs.rle").read_bytes()
    command_line("run-length", "decode", tmp_path / "ours.rle", "-o", tmp_path / "back.npy")
    assert np.array_equal(np.load(tmp_path / "back.npy"), array)


@pytest.mark.parametrize("array", [
    np.zeros((70000,), np.uint8), np.repeat(np.arange(5), 100000).astype(np.int64), RANDOM.random(500),
    np.repeat(RANDOM.integers(0, 2, (1000, 4)), 300, axis=0).astype(np.float16), np.zeros((0, 3), np.uint8)])
def test_containers_of_all_kinds(client, command_line, tmp_path, array):
    """Counts of each size, split runs, arrays stored as they are, no elements."""
    np.save(tmp_path / "array.npy", array)
    client.run_length(array).save(tmp_path / "ours.rle")
    command_line("run-length", "encode", tmp_path / "array.npy", "-o", tmp_path / "theirs.rle")
    assert (tmp_path / "ours.rle").read_bytes() == (tmp_path / "theirs.rle").read_bytes()
    assert np.array_equal(cumulus.load(tmp_path / "theirs.rle").numpy(), array)


def test_pixels_in_containers(client, tmp_path):
    array = np.repeat(np.repeat(RANDOM.integers(0, 2, (9, 10, 3)), 9, axis=0), 9, axis=1).astype(np.uint8)
    for order in ("by-rows", "by-columns"):
        client.run_length(array, pixels=True, order=order).save(tmp_path / "pixels.rle")
        again = cumulus.load(tmp_path / "pixels.rle")
        assert again.pixels and again.order == order and np.array_equal(again.numpy(), array)


def test_trees(client, command_line, tmp_path):
    points, queries = RANDOM.random((3000, 3)), RANDOM.random((40, 3))
    np.save(tmp_path / "points.npy", points)
    np.save(tmp_path / "queries.npy", queries)
    command_line("kd-tree", "build", tmp_path / "points.npy", "-o", tmp_path / "theirs.npz")
    ours = client.kd_tree(points)
    ours.save(tmp_path / "ours.npz")
    with np.load(tmp_path / "ours.npz") as mine, np.load(tmp_path / "theirs.npz") as other:
        assert set(mine.files) == set(other.files)
        assert all(np.array_equal(mine[name], other[name]) for name in mine.files)
    theirs = cumulus.load(tmp_path / "theirs.npz")
    with pytest.raises(cumulus.FailedPrecondition, match=r"tree.to\(client\)"):
        theirs.query(queries)
    command_line("kd-tree", "query", tmp_path / "ours.npz", tmp_path / "queries.npy", "-k", 5, "-o", tmp_path / "found.npz")
    distances, indices = theirs.to(client).query(queries, 5)
    with np.load(tmp_path / "found.npz") as found:
        assert np.array_equal(found["distances"], distances) and np.array_equal(found["indices"], indices)


def test_each_flipped_bit_of_a_container_is_refused(client):
    from cumulus import container

    runs = client.run_length(np.repeat(np.arange(40), 30).astype(np.uint8))
    data = container.pack(runs._content)
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        with pytest.raises(cumulus.InvalidArgument):
            cumulus.RunLengths.from_bytes(bytes(flipped))
    for size in range(len(data)):
        with pytest.raises(cumulus.InvalidArgument):
            cumulus.RunLengths.from_bytes(data[:size])


def test_damaged_tables_are_refused(client):
    from cumulus.sampling import table_format

    data = table_format.to_file(client.sampling_table(np.ones((4, 8), np.float32)).table)
    for place in list(range(256)) + [300, 700, len(data) - 1]:
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        with pytest.raises(cumulus.InvalidArgument):
            cumulus.SamplingTable.from_bytes(bytes(flipped))
    for size in (0, 8, 255, 256, 1000, len(data) - 1):
        with pytest.raises(cumulus.InvalidArgument):
            cumulus.SamplingTable.from_bytes(data[:size])


def test_headers_that_lie_read_nothing_outside(client):
    """Every word of a header, changed, with the checksum made right: refused, or sampled within the table."""
    from cumulus.sampling import table_format

    table = client.sampling_table(np.ones((4, 8), np.float32)).table
    for place in range(8, 256, 4):
        for value in (0, 1, 2, 3, 5, 9, 255, 0x7FFFFFFF, 0xFFFFFFFF):
            changed = table.copy()
            changed[place : place + 4].view("<u4")[0] = value
            try:
                read = cumulus.SamplingTable.from_bytes(table_format.to_file(changed))
            except cumulus.InvalidArgument:
                continue
            read.sample(16)


@pytest.mark.parametrize("text, says", [("", "missing|pixels"), ("0", "pixels"), ("o", "cut off"), ("\x7f", "character 0"),
                                        ("oooooooooo0", "characters")])
def test_texts_that_are_no_masks(text, says):
    with pytest.raises(cumulus.InvalidArgument, match=says):
        cumulus.RunLengths.from_coco({"size": [3, 4], "counts": text})


def test_other_files(tmp_path):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(cumulus.InvalidArgument, match="no .cst, .rle or .npz"):
        cumulus.load(tmp_path / "text")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(cumulus.InvalidArgument, match="no array data"):
        cumulus.load(tmp_path / "other.npz")


def test_bilinear_tables_are_exported(client, command_line, tmp_path):
    weights = np.random.default_rng(15).random((6, 9), dtype=np.float32)
    table = client.sampling_table(weights, projection="plane", interpolation="bilinear").local()
    table.save(tmp_path / "map.cst")
    command_line("sampling-table", tmp_path / "map.cst", "--export", "npz", "-o", tmp_path / "map.npz")
    arrays = np.load(tmp_path / "map.npz")
    points = np.random.default_rng(16).random((200, 2))
    columns, rows, corners = arrays["column_edges"], arrays["row_edges"], arrays["vertices"].astype(float)
    x, y = (np.searchsorted(edges, values, "right") - 1 for edges, values in ((columns, points[:, 0]), (rows, points[:, 1])))
    across, down = ((values - edges[at]) / np.diff(edges)[at]
                    for values, edges, at in ((points[:, 0], columns, x), (points[:, 1], rows, y)))
    cell = np.diff(arrays["marginal_cdf"])[y] * np.diff(arrays["conditional_cdf"], axis=1)[y, x]
    four = corners[y, x], corners[y, x + 1], corners[y + 1, x], corners[y + 1, x + 1]
    value = (four[0] * (1 - across) + four[1] * across) * (1 - down) + (four[2] * (1 - across) + four[3] * across) * down
    area = np.diff(columns)[x] * np.diff(rows)[y]
    assert np.allclose(cell / area * value / (sum(four) / 4), table.pdf(points), rtol=1e-5)
