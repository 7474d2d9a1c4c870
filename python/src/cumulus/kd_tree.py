"""KD-trees: built on a server, asked there; saved and loaded here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from .arrays import AnyArray, NDArray, as_array
from .buffer import Buffer
from .errors import FailedPrecondition, InvalidArgument, wrong
from .foreign import imported, is_array
from .operation import Call, CallOptions, nbytes, whole
from .v1 import kd_tree_pb2 as wire

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client_base import ClientBase
    from .operation_base import OperationBase

PARTS = ("points", "idx_array", "node_data", "node_bounds")
_NAMES = (("nearest", "k"), ("lists.", ""), ("radii", "radius"), ("tree.", ""))
_INT32 = (-(2**31), 2**31 - 1)
NODE = np.dtype([("begin", "<i8"), ("end", "<i8"), ("is_leaf", "<i8"), ("radius", "<f8")])


class NeighborLists(NamedTuple):
    """All points within the radius of each query: query i's are elements offsets[i] to offsets[i + 1] - 1.

    Attributes:
        offsets: int64 [queries + 1].
        indices: int64 [neighbours], of the points that the tree was built of.
        distances: of the tree's type, [neighbours].
    """

    offsets: NDArray
    indices: NDArray
    distances: NDArray

    def of(self, query: int) -> Tuple[NDArray, NDArray]:
        """Distances and indices of one query's neighbours."""
        part = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        return self.distances[part], self.indices[part]


class KdTree:
    """A KD-tree, the one that scikit-learn builds of the same points; made by `Client.kd_tree` and `load`.

    Attributes:
        leaf_size: leaves have leaf_size to 2 leaf_size points.
    """

    def __init__(self, client: Optional["OperationBase"], parts: Dict[str, Any], leaf_size: int) -> None:
        self._client = client
        self._parts = parts
        self._fetched: Dict[str, NDArray] = {}
        self.leaf_size = leaf_size

    @property
    def shape(self) -> Tuple[int, ...]:
        """[points, dimensions], or [trees, points, dimensions]."""
        return tuple(self._parts["points"].shape)

    @property
    def dtype(self) -> Any:
        """Of the points: float32 or float64."""
        return self._parts["points"].dtype

    def __repr__(self) -> str:
        return (f"<cumulus.KdTree of {self.dtype.name} {list(self.shape)}, {self._parts['node_data'].shape[-2]} nodes, "
                f"{'on ' + self._client.address if self._client else 'here'}>")

    def _array(self, name: str) -> NDArray:
        if name not in self._fetched:
            part = self._parts[name]
            self._fetched[name] = part.numpy() if isinstance(part, Buffer) else part
        return self._fetched[name]

    @property
    def points(self) -> NDArray:
        """In the tree's order, [points, dimensions]."""
        return self._array("points")

    @property
    def idx_array(self) -> NDArray:
        """int64 [points]: which of the given points each is."""
        return self._array("idx_array")

    @property
    def nodes(self) -> NDArray:
        """[nodes] of (begin, end, is_leaf, radius): node i has the children 2 i + 1 and 2 i + 2."""
        data = self._array("node_data")
        return np.ascontiguousarray(data).view(NODE)[..., 0]

    @property
    def node_bounds(self) -> NDArray:
        """[2, nodes, dimensions]: the least coordinates, then the greatest."""
        return self._array("node_bounds")

    @property
    def payload(self) -> Optional[NDArray]:
        """What goes with each point, in the tree's order; None where nothing does."""
        return self._array("payload") if "payload" in self._parts else None

    def to(self, client: "ClientBase") -> "KdTree":
        """This tree on a server, to be asked there."""
        return KdTree(client, {name: client.upload(self._array(name)) for name in PARTS}, self.leaf_size)

    # Questions.

    def query(self, queries: Union[AnyArray, Buffer], k: int = 1, *, radius: Any = None, squared: bool = False,
              period: Sequence[float] = (), **call: "Unpack[CallOptions]") -> Tuple[Any, Any]:
        """The k nearest points of each query.

        Args:
            queries: [queries, dimensions] (of many trees [trees, queries, dimensions]), of the tree's type.
            k: 1 to 128.
            radius: points farther than this are no neighbours; one, or one for each query.
            squared: distances come as their squares.
            period: where axis i closes on itself, its length; 0 where it does not.

        Returns:
            distances and indices, [queries, k], nearest first, equal distances by index; where there are fewer, index
            -1 at distance infinity. `Buffer`s where `queries` is one.
        """
        request = wire.FindNeighborsRequest(squared=squared, period=_period(period), nearest=whole(k, "k", *_INT32))
        asked, run = self._ask(request, queries, radius, call)
        result = run.run(isinstance(asked, Buffer), 16 * k * int(np.prod(asked.shape[:-1], dtype=np.int64)))
        resident = isinstance(asked, Buffer)
        return result.either("distances", resident), result.either("indices", resident)

    def counts(self, queries: Union[AnyArray, Buffer], radius: Any, *, period: Sequence[float] = (),
               **call: "Unpack[CallOptions]") -> Any:
        """How many points lie within the radius of each query, int64 [queries]; arguments as `query`."""
        request = wire.FindNeighborsRequest(period=_period(period))
        request.counts.SetInParent()
        asked, run = self._ask(request, queries, radius, call)
        resident = isinstance(asked, Buffer)
        return run.run(resident, nbytes("int64", *asked.shape[:-1])).either("counts", resident)

    def sums(self, queries: Union[AnyArray, Buffer], payload: Union[AnyArray, Buffer], k: Optional[int] = None, *,
             radius: Any = None, squared: bool = False, period: Sequence[float] = (),
             **call: "Unpack[CallOptions]") -> Tuple[Any, Any]:
        """The sums of what goes with each query's neighbours, made on the server: photons around a place, for instance.

        Args:
            queries: as `query` has it.
            payload: a row for each of the points that the tree was built of, in their order, [points] or [points,
                channels] (of many trees [trees, ...]), of the tree's type. Upload it where it is asked for more than once.
            k: of the k nearest, 1 to 128; without, of all points within the radius.
            radius: points farther than this are not summed; one, or one for each query.
            squared: the distance comes as its square.
            period: as `query` has it.

        Returns:
            sums, [queries] or [queries, channels], made in float64 and rounded once; with k the distance of the last of
            the nearest, [queries], infinity where there are fewer; without the number of points summed, int64 [queries].
            `Buffer`s where `queries` is one. On a GPU the server takes 12 bytes (of float64 16) for each query and
            neighbour meanwhile.
        """
        request = wire.FindNeighborsRequest(squared=squared, period=_period(period))
        if k is None:
            request.counts.SetInParent()
        else:
            request.nearest = whole(k, "k", *_INT32)
        asked, run = self._ask(request, queries, radius, call)
        rows = payload if isinstance(payload, Buffer) else as_array(_of_type(payload, self.dtype, "payload"), "payload",
                                                                    (self.dtype.name,))
        run.source(request.payload, rows, "payload")
        channels = rows.shape[-1] if len(rows.shape) == len(self.shape) else 1
        resident = isinstance(asked, Buffer)
        result = run.run(resident, nbytes("float64", *asked.shape[:-1], channels + 1))
        return result.either("sums", resident), result.either("counts" if k is None else "distances", resident)

    def lists(self, queries: AnyArray, radius: Any, *, max_neighbors: Optional[int] = None, squared: bool = False,
              period: Sequence[float] = (), **call: "Unpack[CallOptions]") -> NeighborLists:
        """All points within the radius of each query, in the tree's order; other arguments as `query`.

        Args:
            max_neighbors: room for so many neighbours of all queries together; without, they are counted first.
        """
        most = max_neighbors
        if most is None:
            most = int(np.sum(self.counts(queries, radius, period=period, **call)))
        request = wire.FindNeighborsRequest(squared=squared, period=_period(period))
        request.lists.max_neighbors = most = whole(most, "max_neighbors")
        asked, run = self._ask(request, queries, radius, call)
        result = run.run(False, 16 * most + 8 * (int(np.prod(asked.shape[:-1], dtype=np.int64)) + 1))
        return NeighborLists(result.array("offsets"), result.array("indices"), result.array("distances"))

    def _ask(self, request: Any, queries: Union[AnyArray, Buffer], radius: Any,
             options: CallOptions) -> Tuple[Union[NDArray, Buffer], Call]:
        if self._client is None:
            cure = "tree.to(client)"
            raise FailedPrecondition(f"the tree is not on a server; {cure} brings it there", cure=cure)
        asked = queries if isinstance(queries, Buffer) else as_array(_of_type(queries, self.dtype, "queries"), "queries",
                                                                     (self.dtype.name,))
        if len(asked.shape) != len(self.shape) or asked.shape[-1] != self.shape[-1]:
            right = f"[queries, {self.shape[-1]}]" if len(self.shape) == 2 else f"[trees, queries, {self.shape[-1]}]"
            raise wrong("queries", f"has the shape {list(asked.shape)}", right)
        call = self._client.begin("FindNeighbors", request, options).called(_NAMES)
        for name in PARTS:
            call.source(getattr(request.tree, name), self._parts[name], name)
        call.source(request.queries, asked, "queries")
        if isinstance(radius, Buffer):
            call.source(request.radii, radius, "radius")
        elif isinstance(radius, (list, tuple)) or is_array(radius):
            radii = as_array(_of_type(radius, self.dtype, "radius"), "radius", (self.dtype.name,), (asked.ndim - 1,))
            call.source(request.radii, radii, "radius")
        elif radius is not None:
            request.radius = _number(radius, "radius")
        return asked, call

    # Files and other libraries.

    def _given(self) -> NDArray:
        """The points in the order in which they were given, float64."""
        if len(self.shape) != 2:
            raise wrong("tree", f"there are {self.shape[0]} trees in one", "a tree of points [points, dimensions]")
        data = np.empty(self.shape, np.float64)
        data[self.idx_array] = self.points
        return data

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the .npz file of `cumulus kd-tree build`, float64: data, idx_array, node_data, node_bounds, counts."""
        nodes = self._array("node_data")
        levels = int(nodes.shape[0]).bit_length()
        with open(path, "wb") as file:
            np.savez(file, data=self._given(), idx_array=self.idx_array, node_data=nodes,
                     node_bounds=self.node_bounds.astype(np.float64),
                     counts=np.array([self.leaf_size, levels, nodes.shape[0], 0, 0, 0, 0], np.int64))

    @classmethod
    def from_file(cls, path: Union[str, "os.PathLike[str]"]) -> "KdTree":
        """Of a file that `save` or `cumulus kd-tree build` wrote. `to(client)` brings it to a server."""
        with np.load(path) as saved:
            arrays = {name: saved[name] for name in saved.files}
        if set(arrays) == {"points", "idx_array"}:
            raise InvalidArgument(f"{path}: it is a left-balanced layout, for other programs' searches")
        missing = [name for name in ("data", "idx_array", "node_data", "node_bounds", "counts") if name not in arrays]
        if missing:
            raise InvalidArgument(f"{path}: it has no array {missing[0]}; a file of KdTree.save or "
                                  "'cumulus kd-tree build' is right")
        data, index = arrays["data"], arrays["idx_array"]
        nodes = arrays["node_data"].shape[0]
        fits = (data.ndim == 2 and index.shape == data.shape[:1] and arrays["node_data"].shape == (nodes, NODE.itemsize)
                and arrays["node_bounds"].shape == (2, nodes, data.shape[1]) and arrays["counts"].shape == (7,))
        if not fits or (index.size and (index.min() < 0 or index.max() >= len(data))):
            raise InvalidArgument(f"{path}: its arrays do not go together")
        parts = {"points": data[index], "idx_array": index, "node_data": arrays["node_data"],
                 "node_bounds": arrays["node_bounds"]}
        return cls(None, parts, int(arrays["counts"][0]))

    def to_sklearn(self) -> Any:
        """The same tree as a sklearn.neighbors.KDTree, which pickles; needs scikit-learn."""
        try:
            from sklearn.neighbors import KDTree
        except ImportError as problem:
            raise ImportError("to_sklearn needs scikit-learn: pip install scikit-learn") from problem

        tree = KDTree(np.zeros((1, 2)))
        state = tree.__getstate__()
        nodes = np.ascontiguousarray(self._array("node_data")).view(state[2].dtype)[:, 0]
        levels = int(nodes.shape[0]).bit_length()
        tree.__setstate__((self._given(), self.idx_array, nodes, self.node_bounds.astype(np.float64), self.leaf_size,
                           levels, len(nodes), 0, 0, 0, 0, *state[11:]))
        return tree

    def plot(self, axes: Any = None) -> Any:
        """Draws the points and the leaves' boxes along the first two axes; needs matplotlib. Returns the axes."""
        from .plotting import plot_tree

        return plot_tree(self, axes)

    def _repr_html_(self) -> str:
        from .plotting import html

        facts = {"points": self.shape[-2], "dimensions": self.shape[-1], "dtype": self.dtype.name,
                 "leaf size": self.leaf_size, "nodes": self._parts["node_data"].shape[-2]}
        return html(self, "KD-tree", facts)


def _number(value: Any, field: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise wrong(field, f"is {value!r}", "a number, or one for each query") from None


def _period(period: Any) -> Sequence[float]:
    try:
        return [float(each) for each in period]
    except (TypeError, ValueError):
        raise wrong("period", f"is {period!r}", "a length for each axis, 0 where it does not close on itself,") from None


def _of_type(given: Any, dtype: Any, field: str) -> NDArray:
    """Floats of another width, and whole numbers, as the tree's type."""
    array = imported(given, field)
    return array.astype(dtype) if array.dtype.kind in "fiu" and array.dtype != dtype else array
