"""Each operation by known answers; beside the packages that people use today there is test_agreement.py, too."""

import time

import cumulus
import numpy as np
import pytest

RANDOM = np.random.default_rng(5)


@pytest.fixture(scope="module")
def image():
    return RANDOM.random((97, 131), dtype=np.float32)


@pytest.fixture(scope="module")
def colours():
    return RANDOM.random((61, 83, 3), dtype=np.float32)


# Filters.

@pytest.mark.parametrize("method", ["deriche", "fir"])
def test_exact_blur(client, image, method):
    assert np.abs(client.blur(np.full((30, 40), 0.7), 5, boundary="exact", method=method) - 0.7).max() < 1e-12
    with pytest.raises(cumulus.InvalidArgument, match="FILTER_EXACT"):
        client.blur(image, 5, boundary="exact", derivative=(1, 0))


def test_blurs_like_earlier_ones(client, image):
    first = client.blur(image, 2, request_id="first")
    other = client.blur(image, 2.5)
    assert np.array_equal(client.blur(image, 2.0), first) and np.array_equal(client.blur(image, [2.5, 2.5]), other)
    for wrong in (True, "2"):  # equal to 1, and of its hash; of another type
        with pytest.raises(cumulus.InvalidArgument, match="sigma"):
            client.blur(image, wrong)
    assert not np.array_equal(client.blur(image, 1), first)


def test_a_blur_on_the_server_is_the_same_either_way(client, image, monkeypatch):
    resident = client.upload(image)
    begun = []
    begin = type(client).begin
    monkeypatch.setattr(type(client), "begin", lambda *arguments: (begun.append(1), begin(*arguments))[1])
    short, longer = client.blur(resident, 2), client.blur(resident, 2, request_id="longer")
    assert len(begun) == 1 and client.timings.device
    assert (short.shape, short.dtype, short.nbytes) == (longer.shape, longer.dtype, longer.nbytes)
    assert np.array_equal(short.numpy(), longer.numpy()) and np.array_equal(short.numpy(), client.blur(image, 2))

    def refusals(call):
        for value, sigma in ((resident, 0.1), (client.upload(image[0]), 2), (client.upload(image.astype(np.uint8)), 2), (gone, 2)):
            with pytest.raises(cumulus.Error) as error:
                call(value, sigma)
            yield type(error.value), error.value.code, getattr(error.value, "field", None), error.value.reason

    gone = client.upload(image)
    gone.delete()
    with pytest.raises(cumulus.NotFound):
        for _ in range(500):  # it goes soon
            gone.numpy()
            time.sleep(0.01)
    assert list(refusals(client.blur)) == list(refusals(lambda *given: client.blur(*given, request_id="longer")))
    with cumulus.connect(client.address) as other, pytest.raises(cumulus.InvalidArgument, match="another client"):
        other.blur(resident, 2)


def test_a_pair_of_sigmas_in_an_array(client, image):
    assert np.array_equal(client.blur(image, np.array([2.0, 5.0])), client.blur(image, (2.0, 5.0)))
    with pytest.raises(cumulus.InvalidArgument, match="along x"):
        client.blur(image, np.array([2.0, 5.0, 3.0]))


def test_a_number_of_samples_that_is_none(client, image):
    with pytest.raises(cumulus.InvalidArgument, match="1000.0.*how many"):
        client.sampling_table(image).sample(1e3)


def test_half_and_double(client, image):
    single = client.blur(image, 3)
    half = client.blur(image.astype(np.float16), 3)
    double = client.blur(image.astype(np.float64), 3)
    assert half.dtype == np.float16 and np.abs(half - single).max() < 2e-3
    assert double.dtype == np.float64 and np.abs(double - single).max() < 1e-5


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_pixels_that_are_not_finite(client, kind):
    spoilt = np.ones((9, 11, 2), kind)
    spoilt[4, 3, 1] = np.inf
    spoilt[5, 0, 0] = np.nan
    clean = spoilt.copy()
    clean[4, 3, 1], clean[5, 0, 0] = 65504, 0
    for run in (lambda image, **more: client.blur(image, 2, **more), lambda image, **more: client.box_filter(image, 1, **more)):
        with pytest.raises(cumulus.FailedPrecondition, match="row 4, column 3, channel 1 is inf"):
            run(spoilt)
        assert np.array_equal(run(spoilt, non_finite="clamp"), run(clean))
        assert not np.isfinite(run(spoilt, non_finite="keep")).all()
    with pytest.raises(cumulus.InvalidArgument, match="'refuse', 'clamp' or 'keep'"):
        client.blur(clean, 2, non_finite="drop")


def test_accumulate(client, image):
    ours = client.filter(image, x=cumulus.Gaussian(2), accumulate=image, weight=-1)
    assert np.abs(ours - (image - client.blur(image, (2, 0)))).max() < 1e-6


def test_box_filter_has_the_default_boundary_of_blur(client, image):
    assert np.array_equal(client.box_filter(image, 3), client.box_filter(image, 3, boundary="clamp"))
    assert np.array_equal(client.blur(image, 3), client.blur(image, 3, boundary="clamp"))


def test_box_filter_with_a_radius_for_each_pixel(client, image):
    radii = np.where(np.arange(131) < 60, 2, 5).astype(np.float32)[None].repeat(97, 0)
    ours = client.box_filter(image, radii)
    assert np.allclose(ours[:, :60], client.box_filter(image, 2)[:, :60], atol=1e-6)
    assert np.allclose(ours[:, 60:], client.box_filter(image, 5)[:, 60:], atol=1e-6)


def test_box_statistics(client, image):
    means, deviations = client.box_statistics(image, 3)
    box = image[10:17, 20:27].astype(float)
    assert abs(means[13, 23] - box.mean()) < 1e-6 and abs(deviations[13, 23] - box.std()) < 1e-5


# Summed-area tables.

def test_summed_area_tables_of_bytes(client):
    image = RANDOM.integers(0, 256, (70, 90), dtype=np.uint8)
    table = client.summed_area_table(image)
    assert np.array_equal(np.asarray(table), image.astype(int).cumsum(0).cumsum(1)) and table.dtype == np.uint32


@pytest.mark.parametrize("options", [{}, {"exclusive": True}, {"precision": "mean-subtracted-sums"},
                                     {"precision": "tile-local-sums"}])
def test_rectangles(client, colours, options):
    table = client.summed_area_table(colours, **options)
    rectangles = np.array([[0, 0, 61, 83], [5, 7, 6, 8], [10, 0, 40, 83]])
    theirs = np.array([colours[a:c, b:d].astype(float).sum((0, 1)) for a, b, c, d in rectangles])
    assert np.abs(table.sum(rectangles) - theirs).max() < 1e-2
    assert np.abs(table.mean(rectangles) - theirs / [[61 * 83], [1], [30 * 83]]).max() < 1e-5


def test_variances(client, image):
    table = client.summed_area_table(image, squares=True)
    assert abs(table.variance(np.array([[3, 4, 50, 60]]))[0] - image[3:50, 4:60].astype(float).var()) < 1e-9
    with pytest.raises(cumulus.InvalidArgument, match="squares=True"):
        client.summed_area_table(image).variance(np.array([[3, 4, 50, 60]]))


# Sampling tables.

def test_samples_follow_the_map(client):
    sky = RANDOM.random((16, 32), dtype=np.float32) ** 6
    table = client.sampling_table(sky, projection="plane")
    position = table.sample(1 << 18).position
    counts = np.histogram2d(position[:, 1], position[:, 0], bins=(16, 32), range=((0, 1), (0, 1)))[0]
    assert np.abs(counts / (1 << 18) - sky / sky.sum()).max() < 1e-4
    assert np.abs(table.probabilities() - sky / sky.sum()).max() < 1e-6
    x, y = (position[:100] * (32, 16)).astype(int).T
    assert np.allclose(table.pdf(position[:100]), (sky / sky.mean())[y, x], rtol=1e-4)


def test_methods_and_projections_by_name(client):
    sky = RANDOM.random((8, 8), dtype=np.float32)
    for method in ("radix-forest", "RADIX_FOREST", "cutpoint-binary", "binary-search", "alias"):
        table = client.sampling_table(sky, projection="equal-area", method=method)
        assert table.header.method_name == method.lower().replace("_", "-")
        assert table.header.projection_name == "equal-area"
    with pytest.raises(cumulus.InvalidArgument, match="'radix-forest'"):
        client.sampling_table(sky, method="radix-tree")


def test_luminance(client, colours):
    custom = client.sampling_table(colours, luminance=(0, 1, 0))
    green = client.sampling_table(np.ascontiguousarray(colours[..., 1]))
    assert np.array_equal(custom.table, green.table)


# KD-trees.

def test_neighbours_of_floats_are_scikit_learns(client):
    neighbors = pytest.importorskip("sklearn.neighbors")
    points, queries = RANDOM.random((3001, 3), dtype=np.float32), RANDOM.random((200, 3), dtype=np.float32)
    theirs = neighbors.KDTree(points.astype(float), leaf_size=40)
    tree = client.kd_tree(points)
    assert np.array_equal(tree.query(queries, k=8)[1], theirs.query(queries.astype(float), k=8)[1])
    counts = theirs.query_radius(queries.astype(float), 0.15, count_only=True)
    assert np.abs(tree.counts(queries, 0.15) - counts).max() <= 1


def test_a_tree_for_one_frame_answers_as_the_exact_one(client):
    points, queries = RANDOM.random((140_000, 3), dtype=np.float32), RANDOM.random((500, 3), dtype=np.float32)
    exact, sampled = client.kd_tree(points), client.kd_tree(points, medians="sampled")
    for theirs, ours in zip(exact.query(queries, k=8), sampled.query(queries, k=8)):
        assert np.array_equal(theirs, ours)
    with pytest.raises(cumulus.InvalidArgument, match="'exact'"):
        client.kd_tree(points, medians="median")
    with pytest.raises(cumulus.InvalidArgument, match="with MIDPOINT MEDIANS_EXACT is right"):
        client.kd_tree(points, medians="sampled", split="midpoint")


def test_a_radius_for_each_query_and_periods(client):
    spatial = pytest.importorskip("scipy.spatial")
    points, queries = RANDOM.random((1000, 2)), RANDOM.random((50, 2))
    radii = RANDOM.random(50) * 0.2
    tree = client.kd_tree(points)
    theirs = spatial.cKDTree(points)
    assert np.array_equal(tree.counts(queries, radii), theirs.query_ball_point(queries, radii, return_length=True))
    around = spatial.cKDTree(points, boxsize=1)
    assert np.allclose(tree.query(queries, 4, period=(1, 1))[0], around.query(queries, 4)[0])
    distances, indices = tree.query(queries, 30, radius=0.05)
    assert np.array_equal(indices == -1, np.isinf(distances)) and (distances[np.isfinite(distances)] <= 0.05).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_neighbours_are_those_of_their_lists(client, dtype):
    points, queries = RANDOM.random((2000, 3)).astype(dtype), RANDOM.random((150, 3)).astype(dtype)
    colours = RANDOM.random((2000, 3)).astype(dtype)
    tree = client.kd_tree(points)
    distances, indices = tree.query(queries, 20, squared=True)
    sums, last = tree.sums(queries, colours, 20, squared=True)
    assert np.array_equal(sums, colours[indices].astype(float).cumsum(1)[:, -1].astype(dtype))
    assert np.array_equal(last, distances[:, -1])
    ones, counts = tree.sums(queries, np.ones(2000), radius=0.1)
    assert np.array_equal(counts, tree.counts(queries, 0.1)) and np.array_equal(ones, counts) and ones.dtype == dtype
    kept = tree.sums(client.upload(queries), client.upload(colours), 20, squared=True)
    assert np.array_equal(kept[0].numpy(), sums) and np.array_equal(kept[1].numpy(), last)
    fewer, far = tree.sums(queries, np.ones(2000), 100, radius=0.1)
    assert np.array_equal(fewer, np.minimum(counts, 100)) and np.array_equal(np.isinf(far), counts < 100)
    with pytest.raises(cumulus.InvalidArgument, match="a row for each point"):
        tree.sums(queries, colours[1:], 20)


def test_many_trees_at_once(client):
    neighbors = pytest.importorskip("sklearn.neighbors")
    points, queries = RANDOM.random((3, 400, 2)), RANDOM.random((3, 20, 2))
    tree = client.kd_tree(points)
    distances, indices = tree.query(queries, 4)
    lists = tree.lists(queries, 0.1)
    for i in range(3):
        theirs = neighbors.KDTree(points[i])
        assert np.array_equal(np.stack((distances[i], indices[i])), theirs.query(queries[i], k=4))
        found = theirs.query_radius(queries[i], 0.1)
        assert all(np.array_equal(np.sort(lists.of(20 * i + q)[1]), np.sort(found[q])) for q in range(20))
    resident = tree.query(client.upload(queries), 4)
    assert np.array_equal(resident[0].numpy(), distances) and np.array_equal(resident[1].numpy(), indices)


# Run lengths.

def test_a_batch_of_masks(client):
    mask_module = pytest.importorskip("pycocotools.mask")
    batch = RANDOM.random((4, 19, 23)) < 0.7
    ours = client.run_length(batch).to_coco()
    assert [np.array_equal(mask_module.decode(each), mask) for each, mask in zip(ours, batch)] == [True] * 4


@pytest.mark.parametrize("order", ["by-rows", "by-columns"])
@pytest.mark.parametrize("key", [np.s_[10:20, 5:9], np.s_[3], np.s_[:, 4], np.s_[-1, -2], np.s_[::3, ::-2], np.s_[5:5]])
def test_slices(client, order, key):
    array = np.repeat(RANDOM.integers(0, 5, (40, 10)), 3, axis=1).astype(np.int32)
    assert np.array_equal(client.run_length(array, order=order)[key], array[key])


def test_slices_of_pixels(client):
    array = np.repeat(RANDOM.integers(0, 2, (20, 10, 3)), 4, axis=1).astype(np.uint8)
    for order in ("by-rows", "by-columns"):
        runs = client.run_length(array, pixels=True, order=order)
        assert np.array_equal(runs[4:9, 10:30], array[4:9, 10:30])
        assert np.array_equal(runs[4:9, 10:30, 1], array[4:9, 10:30, 1])
        assert np.array_equal(runs.numpy(), array) and runs.area == array.any(axis=2).sum()


def test_runs_on_the_server(client):
    mask = np.zeros((57, 83), bool)
    mask[5:20, 7:30] = mask[30:33] = True
    runs = client.run_length(client.upload(mask))
    assert runs.resident and isinstance(runs.decode(), cumulus.Buffer) and np.array_equal(runs.numpy(), mask)
    assert runs.area == mask.sum() and runs.to_coco() == client.run_length(mask).to_coco()
    pixels = np.repeat(RANDOM.integers(0, 3, (9, 5, 2)), 4, axis=1).astype(np.uint16)
    for order in ("by-rows", "by-columns"):
        runs = client.run_length(client.upload(pixels), pixels=True, order=order)
        assert np.array_equal(runs.numpy(), pixels) and np.array_equal(runs[2:5, 3], pixels[2:5, 3])


# Brackets and clips.

def test_brackets(client):
    text = "(a[b]{c})"
    found = client.match_brackets(text, outputs=("partner", "parent", "depth", "stack_top", "maximum-depth"))
    assert found.partner.tolist() == [8, -1, 4, -1, 2, 7, -1, 5, 0]
    assert found.parent.tolist() == [-1, 0, 0, 2, 0, 0, 5, 0, -1]
    assert found.depth.tolist() == [0, 1, 1, 2, 1, 1, 2, 1, 0] and found.maximum_depth == 2
    assert client.match_brackets("<a>", pairs="<>").partner.tolist() == [2, -1, 0]
    lenient = client.match_brackets(np.array([1, 2, -1], np.int32), lenient=True)
    assert lenient.unmatched == 3 and lenient.partner.tolist() == [-1, -1, -1]
    parts = client.match_brackets("()()", segments=np.array([0, 2]))
    assert parts.partner.tolist() == [1, 0, 3, 2]


def test_clips(client):
    boxes = np.array([[0, 0, 5, 5], [3, 3, 9, 9], [0, 0, 0, 0], [1, 1, 2, 2]], np.float32)
    bounds = client.intersect_clips(np.array([1, 0, 2, 0], np.uint8), boxes)
    assert bounds.tolist() == [[0, 0, 5, 5], [3, 3, 5, 5], [0, 0, 5, 5], [1, 1, 2, 2]]


def test_left_balanced_trees_and_payloads(client):
    points = RANDOM.random((500, 3))
    arranged, order = client.left_balanced_kd_tree(points)
    assert np.array_equal(points[order], arranged)

    def subtree(node):
        return [] if node >= 500 else [node] + subtree(2 * node + 1) + subtree(2 * node + 2)

    for node in range(500):
        axis = ((node + 1).bit_length() - 1) % 3
        here = arranged[node, axis]
        assert (arranged[subtree(2 * node + 1), axis] <= here).all()
        assert (arranged[subtree(2 * node + 2), axis] >= here).all()
    tree = client.kd_tree(points, payload=np.arange(500, dtype=np.uint16))
    assert np.array_equal(tree.payload, tree.idx_array) and client.kd_tree(points).payload is None
