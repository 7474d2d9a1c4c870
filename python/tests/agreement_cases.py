"""What Cumulus and the packages that people use today are both asked: of SciPy, OpenCV, scikit-learn and pycocotools.

Each case names the peer's call and ours, and gives what both answer of the same data.
"""

import functools
import pickle
from typing import Any, Callable, List, NamedTuple, Tuple

import cumulus
import cv2
import numpy as np
from pycocotools import mask as coco
from scipy import ndimage, signal, spatial
from sklearn import neighbors

Pairs = List[Tuple[Any, Any]]  # (ours, theirs)


class Case(NamedTuple):
    """`bound`: of the difference, over the largest magnitude that the peer answers; 0: bit for bit. `why`: they differ."""

    theirs: str
    ours: str
    data: str  # images, pictures (of uint8), points or masks
    answers: Callable[[Any, Any], Pairs]
    bound: float = 0
    why: str = ""


RECURSIVE = "deriche is a recursive fit of the Gaussian, to 0.03 %"
FINITE = "fir's window is finite, within 7.3e-7 of each pixel"
SCIPY_MODES = {"clamp": "nearest", "repeat": "wrap", "reflect": "reflect", "mirror": "mirror", "zero": "constant"}
OPENCV_BORDERS = {"clamp": "BORDER_REPLICATE", "reflect": "BORDER_REFLECT", "mirror": "BORDER_REFLECT_101", "zero": "BORDER_CONSTANT"}


def scipy_gaussian(image, sigma, **options):
    return ndimage.gaussian_filter(image.astype(float), sigma, axes=(0, 1), **options)


def scipy_blurs():
    for boundary, mode in SCIPY_MODES.items():
        yield Case(f'gaussian_filter(a, 5, mode="{mode}", truncate=10)', f'blur(a, 5, boundary="{boundary}")', "images",
                   lambda c, a, boundary=boundary, mode=mode: [
                       (c.blur(a, 5, boundary=boundary), scipy_gaussian(a, 5, mode=mode, truncate=10))], 1e-6, FINITE)
    yield Case('gaussian_filter(a, 5, mode="nearest")', "blur(a, 5)", "images",
               lambda c, a: [(c.blur(a, 5), scipy_gaussian(a, 5, mode="nearest"))], 5e-4,
               "SciPy cuts the Gaussian off at 4 sigma; and as above")
    yield Case('gaussian_filter(a, 5, mode="nearest", truncate=10)', 'blur(a, 5, method="young")', "images",
               lambda c, a: [(c.blur(a, 5, method="young"), scipy_gaussian(a, 5, mode="nearest", truncate=10))], 2e-2,
               "young is a coarser fit, of three poles")
    yield Case('gaussian_filter(a, 5, mode="nearest", truncate=10)', 'blur(a, 5, method="deriche")', "images",
               lambda c, a: [(c.blur(a, 5, method="deriche"), scipy_gaussian(a, 5, mode="nearest", truncate=10))], 3e-4, RECURSIVE)
    yield Case('gaussian_filter(a, 5, mode="nearest", truncate=10)', "blur(a, 5), float64", "images",
               lambda c, a: [(c.blur(a.astype(np.float64), 5), scipy_gaussian(a, 5, mode="nearest", truncate=10))], 1e-6, FINITE)
    yield Case('gaussian_filter(a, (2, 6), mode=("nearest", "wrap"), truncate=10)', 'blur(a, (6, 2), boundary=("repeat", "clamp"))',
               "images", lambda c, a: [(c.blur(a, (6, 2), boundary=("repeat", "clamp")),
                                        scipy_gaussian(a, (2, 6), mode=("nearest", "wrap"), truncate=10))], 1e-6, FINITE)
    yield Case('gaussian_filter1d(a, 6, axis=1, mode="nearest", truncate=10)', "blur(a, (6, 0))", "images",
               lambda c, a: [(c.blur(a, (6, 0)), ndimage.gaussian_filter1d(a.astype(float), 6, axis=1, mode="nearest", truncate=10))], 1e-6,
               FINITE)
    for order, derivative, bound in (((0, 1), (1, 0), 2e-3), ((2, 0), (0, 2), 1e-2)):
        yield Case(f'gaussian_filter(a, 4, order={order}, mode="nearest", truncate=10)', f"blur(a, 4, derivative={derivative})", "images",
                   lambda c, a, order=order, derivative=derivative: [
                       (c.blur(a, 4, derivative=derivative), scipy_gaussian(a, 4, order=order, mode="nearest", truncate=10))], bound,
                   "a fit of the derivative")
    for method, bound in (("deriche", 3e-4), ("fir", 1e-6)):
        yield Case('gaussian_filter(a, 5, mode="constant", truncate=10), over that of ones',
                   f'blur(a, 5, boundary="exact", method="{method}")', "images",
                   functools.partial(exact_blur, method), bound, RECURSIVE if method == "deriche" else FINITE)


def exact_blur(method, c, image):
    between_zeros = functools.partial(scipy_gaussian, sigma=5, mode="constant", truncate=10)
    return [(c.blur(image, 5, boundary="exact", method=method), between_zeros(image) / between_zeros(np.ones(image.shape)))]


def scipy_filters():
    for boundary, mode in SCIPY_MODES.items():
        yield Case(f'uniform_filter(a, (5, 9), mode="{mode}")', f'box_filter(a, (4, 2), boundary="{boundary}")', "images",
                   lambda c, a, boundary=boundary, mode=mode: [
                       (c.box_filter(a, (4, 2), boundary=boundary),
                        ndimage.uniform_filter(a.astype(float), (5, 9), mode=mode, axes=(0, 1)))], 1e-6, "rounding to float32")
    for degree in (3, 5):
        yield Case(f'spline_filter(a, {degree}, mode="mirror"), float64', f"bspline_prefilter(a, {degree})", "images",
                   lambda c, a, degree=degree: [
                       (c.bspline_prefilter(a.astype(float)[..., 0], degree),
                        ndimage.spline_filter(a.astype(float)[..., 0], degree, mode="mirror"))], 1e-13, "rounding")
    yield Case("signal.lfilter([0.3], [1, -1.2, 0.5], a, axis=1), float64", 'filter(a, x=Feedback((-1.2, 0.5), gain=0.3), boundary="zero")',
               "images", lambda c, a: [(c.filter(a.astype(float), x=cumulus.Feedback(causal=(-1.2, 0.5), gain=0.3), boundary="zero"),
                                        signal.lfilter([0.3], [1, -1.2, 0.5], a.astype(float), axis=1))], 1e-13, "rounding")
    yield Case("signal.lfilter([0.5], [1, -0.5], a, axis=0), forth and back, float64", 'filter(a, y=Exponential(0.5), boundary="zero")',
               "images", forth_and_back, 1e-13)


def forth_and_back(c, image):
    ours = c.filter(image.astype(float), y=cumulus.Exponential(0.5), boundary="zero")
    beyond = np.pad(image.astype(float), ((0, 60), (0, 0), (0, 0)))  # the first filter goes on behind the last row
    once = signal.lfilter([0.5], [1, -0.5], beyond, axis=0)
    return [(ours, signal.lfilter([0.5], [1, -0.5], once[::-1], axis=0)[::-1][:-60])]


def queries_of(points):
    """500 in the box around them, of the same type."""
    low, high = points.min(axis=0), points.max(axis=0)
    return (low + np.random.default_rng(8).random((500, points.shape[1])) * (high - low)).astype(points.dtype)


def radius_of(points):
    """In which some tens of points lie."""
    return float(np.linalg.norm(np.ptp(points, axis=0))) / 20


def double(answers):
    """Of points in float64."""
    return lambda c, points: answers(c, points.astype(float), queries_of(points.astype(float)))


def around(c, points, queries):
    period = np.ptp(points, axis=0) * 1.001
    low = points.min(axis=0)
    theirs = spatial.cKDTree(points - low, boxsize=period)
    return [(c.kd_tree(points - low).query(queries - low, 4, period=tuple(period))[0], theirs.query(queries - low, 4)[0])]


def scipy_trees():
    yield Case("spatial.cKDTree(p).query(q, 8), float64", "kd_tree(p).query(q, 8)", "points", double(
        lambda c, p, q: list(zip(c.kd_tree(p).query(q, 8), spatial.cKDTree(p).query(q, 8)))))
    yield Case("spatial.cKDTree(p).query_ball_point(q, r, return_length=True)", "kd_tree(p).counts(q, r)", "points", double(
        lambda c, p, q: [(c.kd_tree(p).counts(q, radius_of(p)),
                          spatial.cKDTree(p).query_ball_point(q, radius_of(p), return_length=True))]))
    yield Case("spatial.cKDTree(p, boxsize=b).query(q, 4), float64", "kd_tree(p).query(q, 4, period=b)", "points", double(around), 1e-14)


def opencv_filters():
    for boundary, border in OPENCV_BORDERS.items():
        yield Case(f"GaussianBlur(a, (101, 101), 5, borderType={border})", f'blur(a, 5, boundary="{boundary}")', "images",
                   lambda c, a, boundary=boundary, border=border: [
                       (c.blur(a, 5, boundary=boundary), cv2.GaussianBlur(a, (101, 101), 5, borderType=getattr(cv2, border)))], 1e-6,
                   FINITE)
    yield Case("GaussianBlur(a, (0, 0), 5, borderType=BORDER_REPLICATE)", "blur(a, 5)", "images",
               lambda c, a: [(c.blur(a, 5), cv2.GaussianBlur(a, (0, 0), 5, borderType=cv2.BORDER_REPLICATE))], 5e-4,
               "OpenCV cuts the Gaussian off at 4 sigma; and as above")
    for boundary, border in OPENCV_BORDERS.items():
        yield Case(f"boxFilter(a, -1, (9, 5), borderType={border}), float64", f'box_filter(a, (4, 2), boundary="{boundary}")', "images",
                   lambda c, a, boundary=boundary, border=border: [
                       (c.box_filter(a, (4, 2), boundary=boundary), opencv_box(a, (9, 5), getattr(cv2, border)))], 1e-6,
                   "rounding to float32")
    yield Case("blur(a, (9, 9), borderType=BORDER_REFLECT), uint8", 'rint(box_filter(a, 4, boundary="reflect"))', "pictures",
               lambda c, a: [(np.rint(c.box_filter(a, 4, boundary="reflect")), cv2.blur(a, (9, 9), borderType=cv2.BORDER_REFLECT))], 0,
               "OpenCV answers uint8, rounded; ours are float32, not rounded")


def opencv_box(image, size, border):
    return cv2.boxFilter(image.astype(float), -1, size, borderType=border)


def opencv_tables():
    yield Case("integral(a), uint8", "summed_area_table(a, exclusive=True)", "pictures",
               lambda c, a: [(c.summed_area_table(a[..., 0], exclusive=True).numpy(), cv2.integral(a[..., 0]))])
    yield Case("integral(a, sdepth=CV_64F), float32", "summed_area_table(a, exclusive=True)", "images",
               lambda c, a: [(c.summed_area_table(a[..., 0], exclusive=True).numpy(),
                              cv2.integral(np.ascontiguousarray(a[..., 0]), sdepth=cv2.CV_64F))], 1e-14)
    yield Case("integral2(a), the squares' sums, uint8", "summed_area_table(a, exclusive=True, squares=True)", "pictures", squares)


def squares(c, picture):
    table = c.summed_area_table(picture[..., 0], exclusive=True, squares=True)
    sums, of_squares = cv2.integral2(picture[..., 0])[:2]
    return [(table.numpy(), sums), (table.squares.numpy(), of_squares)]


def same_trees(ours, theirs):
    """Both scikit-learn's: points, nodes, boxes, and which points each leaf has."""
    (points, mine, nodes, boxes), (their_points, other, their_nodes, their_boxes) = ours.get_arrays(), theirs.get_arrays()
    leaves = [slice(node["idx_start"], node["idx_end"]) for node in their_nodes if node["is_leaf"]]
    return [(points, their_points), (boxes, their_boxes), *((nodes[name], their_nodes[name]) for name in ("idx_start", "idx_end", "is_leaf")),
            *((np.sort(mine[leaf]), np.sort(other[leaf])) for leaf in leaves)]


def scikit_learn_trees():
    yield Case("KDTree(p, leaf_size=20).get_arrays()", "kd_tree(p, leaf_size=20).to_sklearn(), pickled", "points", double(pickled), 0,
               "points of a leaf stand in another order")
    yield Case("KDTree(p).query(q, k=8)", "kd_tree(p).query(q, 8), float64", "points", double(
        lambda c, p, q: list(zip(c.kd_tree(p).query(q, 8), neighbors.KDTree(p).query(q, k=8)))))
    yield Case("KDTree(p).query(q, k=8)", "kd_tree(p).query(q, 8), float32", "points",
               lambda c, p: [(c.kd_tree(p).query(queries_of(p), 8)[0], neighbors.KDTree(p).query(queries_of(p), k=8)[0])], 1e-6,
               "scikit-learn computes in float64, ours in the points' type")
    yield Case("KDTree(p).query_radius(q, r), sorted", "kd_tree(p).lists(q, r)", "points", double(lists))
    yield Case("KDTree(p).query_radius(q, r, count_only=True)", "kd_tree(p).counts(q, r)", "points", double(
        lambda c, p, q: [(c.kd_tree(p).counts(q, radius_of(p)), neighbors.KDTree(p).query_radius(q, radius_of(p), count_only=True))]))
    for algorithm, bound, why in (("kd_tree", 0, ""), ("brute", 1e-6, "brute takes distances from scalar products")):
        yield Case(f'NearestNeighbors(algorithm="{algorithm}").fit(p).kneighbors(q, 8)', "kd_tree(p).query(q, 8), float64", "points", double(
            lambda c, p, q, algorithm=algorithm: list(zip(
                c.kd_tree(p).query(q, 8), neighbors.NearestNeighbors(algorithm=algorithm).fit(p).kneighbors(q, 8)))), bound, why)


def pickled(c, points, queries):
    theirs = neighbors.KDTree(points, leaf_size=20)
    ours = pickle.loads(pickle.dumps(c.kd_tree(points, leaf_size=20).to_sklearn()))
    return [*same_trees(ours, theirs), *zip(ours.query(queries, k=5), theirs.query(queries, k=5))]


def lists(c, points, queries):
    found = c.kd_tree(points).lists(queries, radius_of(points))
    theirs = neighbors.KDTree(points).query_radius(queries, radius_of(points))
    return [(np.sort(found.of(place)[1]), np.sort(each)) for place, each in enumerate(theirs)]


def encoded(mask):
    return coco.encode(np.asfortranarray(mask.astype(np.uint8)))


def same_text(ours, theirs):
    """As numbers, of both texts of a mask and its size."""
    return [(np.frombuffer(ours["counts"].encode(), np.uint8), np.frombuffer(theirs["counts"], np.uint8)), (ours["size"], theirs["size"])]


def pycocotools_masks():
    for order in ("by-rows", "by-columns"):
        yield Case('encode(m)["counts"]', f'run_length(m, order="{order}").to_coco()["counts"]', "masks",
                   lambda c, m, order=order: same_text(c.run_length(m, order=order).to_coco(), encoded(m)))
    yield Case("decode(encode(m))", "RunLengths.from_coco(encode(m)).numpy()", "masks",
               lambda c, m: [(cumulus.RunLengths.from_coco(encoded(m)).numpy(), coco.decode(encoded(m)))])
    yield Case("decode(r), of our runs", "run_length(m).numpy()", "masks",
               lambda c, m: [(c.run_length(m).numpy(), coco.decode(c.run_length(m).to_coco()))])
    yield Case("area(r)", "run_length(m).area", "masks", lambda c, m: [(c.run_length(m).area, coco.area(encoded(m)))])
    yield Case("toBbox(r)", "run_length(m).box", "masks", lambda c, m: [(c.run_length(m).box, coco.toBbox(encoded(m)))])
    yield Case("iou([r], [s], [0]), of its own runs", "the same, of run_length(m).to_coco()", "masks", overlap)


def overlap(c, mask):
    """With itself turned by half."""
    both = mask, mask[::-1, ::-1]
    ours, theirs = ([encode(each) for each in both] for encode in (lambda each: c.run_length(each).to_coco(), encoded))
    return [(coco.iou(ours[:1], ours[1:], [0]), coco.iou(theirs[:1], theirs[1:], [0]))]


PEERS = {"SciPy": [*scipy_blurs(), *scipy_filters(), *scipy_trees()], "OpenCV": [*opencv_filters(), *opencv_tables()],
         "scikit-learn": [*scikit_learn_trees()], "pycocotools": [*pycocotools_masks()]}
