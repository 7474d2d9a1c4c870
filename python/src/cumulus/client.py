"""The client of a Cumulus server: `connect`, and a method for each operation."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence, Tuple, TypeVar, Union, overload

import numpy as np

from . import filters, transfer
from .arrays import NDArray, as_array, bytes_of, check_image, choose, write_spec
from .brackets import OUTPUTS, Brackets
from .buffer import Buffer, EncodedImage
from .connection import Connection
from .daemon import PrivateDaemon, server_address
from .errors import Error, NotFound, wrong
from .kd_tree import KdTree
from .operation import Call, CallOptions, ImageLike, Input, Timings, nbytes, pair
from .run_length import RunLengths
from .sampling_table import SamplingTable
from .session import Session
from .summed_area_table import SummedAreaTable
from .v1 import (array_pb2, bracket_match_pb2, kd_tree_pb2, recursive_filter_pb2, run_length_pb2, sampling_table_pb2,
                 server_pb2, summed_area_table_pb2, transfer_pb2)

if TYPE_CHECKING:
    from typing_extensions import Unpack

Response = TypeVar("Response")
Pair = Union[float, Tuple[float, float]]
Names = Union[str, Tuple[str, str]]

_FLOATS = ("float16", "float64", "float32")
_GONE = ("SESSION_EXPIRED", "SESSION_NOT_FOUND", "INSTANCE_RESTARTED")


def connect(address: Optional[str] = None, *, backend: str = "", device: str = "", timeout: float = 300.0,
            connect_timeout: float = 10.0, connections: int = 1, lease: Optional[float] = None,
            progress: Union[bool, transfer.Progress] = False, dead_after: float = 40.0) -> "Client":
    """Connects to a server.

    Args:
        address: HOST:PORT, [HOST6]:PORT or unix:PATH. Without one CUMULUS_SERVER, and without that a private cumulusd
            that lives as long as the client.
        backend: of a private cumulusd, "cpu" or "cuda"; it chooses without.
        device: of the server, "cuda0" for instance; the one with most memory free without.
        timeout: seconds for calls that name none. Transfers get one more for each 16 MiB.
        connect_timeout: seconds for the first answer.
        connections: TCP connections; transfers of several threads are spread over them.
        lease: seconds that the server keeps buffers of a client that has vanished; its default without.
        progress: True shows bars of tqdm, where that is installed, for transfers of 16 MiB and more; or a function that
            is called with the bytes that are done and all bytes.
        dead_after: seconds without a sign of life after which a server counts as dead.

    Raises:
        Unavailable: no server answers, or none can be started; the text says what to do.

    The connection is not encrypted and uses no HTTP proxy.
    """
    if connections < 1:
        raise wrong("connections", f"is {connections}", "at least 1")
    daemon = None
    target = address or server_address()
    if not target:
        daemon = PrivateDaemon(backend)
        target = daemon.address
    connection = Connection(target, size=connections, connect_timeout=connect_timeout, call_timeout=timeout,
                            dead_after=dead_after)
    try:
        connection.wait(connect_timeout)
        return Client(connection, daemon, device=device, lease=lease, progress=progress)
    except BaseException:
        connection.close()
        if daemon is not None:
            daemon.stop()
        raise


class Client:
    """A connection to one server, and the arrays that it keeps there. Made by `connect`; close it, or use it as a context.

    What an operation is given decides where its results are: of numpy arrays (or image files) it answers numpy arrays;
    of a `Buffer` the results stay on the server as buffers, and the next operation on them transfers nothing. Arrays
    are sent without a copy where they are contiguous and little-endian; bool counts as uint8. Pairs are (along x, along
    y). Methods may be called from several threads at once.

    Every operation takes `timeout`, `request_id`, `priority`, `ttl` and `evictable` besides its own arguments
    (`CallOptions`), and may raise any `Error`.
    """

    def __init__(self, connection: Connection, daemon: Optional[PrivateDaemon], *, device: str,
                 lease: Optional[float], progress: Union[bool, transfer.Progress]) -> None:
        self.connection = connection
        self._daemon = daemon
        self._device = device
        self._lease = lease
        self._progress = progress
        self._lock = threading.Lock()
        self._session: Optional[Session] = None
        self._local = threading.local()
        self.capabilities = self._capabilities()

    def _capabilities(self) -> server_pb2.Capabilities:
        return self.call("/cumulus.v1.Server/GetCapabilities", server_pb2.GetCapabilitiesRequest(),
                         server_pb2.Capabilities.FromString)

    @property
    def address(self) -> str:
        return self.connection.address

    def __repr__(self) -> str:
        devices = ", ".join(f"{device.name} {device.model}" for device in self.capabilities.devices)
        return f"<cumulus.Client of {self.address}: {devices}>"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Deletes what the client keeps on the server, and ends a private server."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None and not session.lost:
            session.close()
        self.connection.close()
        if self._daemon is not None:
            self._daemon.stop()

    @property
    def session(self) -> Session:
        """The session that owns the buffers; made when it is first needed, and anew once it has been lost."""
        with self._lock:
            if self._session is None or self._session.lost:
                self._session = Session(self.connection, device=self._device, ttl=self._lease)
            return self._session

    @property
    def timings(self) -> Timings:
        """Of the last operation on this thread."""
        return getattr(self._local, "timings", Timings(0.0, 0.0, 0.0, 0.0, ""))

    @timings.setter
    def timings(self, timings: Timings) -> None:
        self._local.timings = timings

    def call(self, method: str, request: Any, response: Callable[[bytes], Response],
             timeout: Optional[float] = None) -> Response:
        """One call of the wire, by its full name; for what the other methods do not cover."""
        try:
            return self.connection.call(method, request, response, timeout)
        except NotFound as error:
            self._forget(error)
            raise

    def _forget(self, error: Error) -> None:
        if error.reason in _GONE and self._session is not None:
            self._session.lost = True

    @contextlib.contextmanager
    def progress_of(self, size: int, what: str) -> Iterator[Optional[transfer.Progress]]:
        """What to call as a transfer of `size` bytes goes on."""
        if callable(self._progress):
            yield self._progress
            return
        if not self._progress or size < 16 << 20:
            yield None
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            yield None
            return
        with tqdm(total=size, unit="B", unit_scale=True, unit_divisor=1024, desc=what, leave=False) as bar:
            yield lambda done, total: bar.update(done - bar.n)

    # Arrays on the server.

    def upload(self, array: Any, *, timeout: Optional[float] = None, ttl: Optional[float] = None,
               evictable: bool = False, request_id: str = "") -> Buffer:
        """Copies an array to the server, in chunks that carry a crc32c each.

        Args:
            array: of any shape, uint8 to uint64, int32, int64, float16 to float64; bool counts as uint8.
            ttl: seconds that the buffer lives; without, as long as the client.
            evictable: the server may drop it when the device runs out of memory.
        """
        data = as_array(array, "array")
        spec = transfer_pb2.WriteSpec(session=self.session.name, evictable=evictable, request_id=request_id)
        write_spec(data.dtype, data.shape, spec.spec)
        if ttl is not None:
            spec.ttl.FromNanoseconds(int(ttl * 1e9))
        try:
            with self.progress_of(data.nbytes, "upload") as progress:
                return Buffer(self, transfer.upload(self.connection, spec, bytes_of(data), timeout=timeout,
                                                    progress=progress))
        except NotFound as error:
            self._forget(error)
            raise

    def _image(self, image: Union[ImageLike, Buffer], field: str, dtypes: Sequence[str], batch: bool = False) -> Input:
        if isinstance(image, (str, os.PathLike, bytes)):
            return EncodedImage(image)
        if isinstance(image, EncodedImage):
            return image
        array = image if isinstance(image, Buffer) else as_array(image, field, dtypes)
        check_image(array.shape, field, batch)
        return array

    # Filters.

    @overload
    def blur(self, image: Buffer, sigma: Pair, *, boundary: Names = ..., method: str = ...,
             derivative: Union[int, Tuple[int, int]] = ..., algorithm: str = ...,
             max_truncation_error: Optional[float] = ..., **call: "Unpack[CallOptions]") -> Buffer: ...

    @overload
    def blur(self, image: ImageLike, sigma: Pair, *, boundary: Names = ..., method: str = ...,
             derivative: Union[int, Tuple[int, int]] = ..., algorithm: str = ...,
             max_truncation_error: Optional[float] = ..., **call: "Unpack[CallOptions]") -> NDArray: ...

    def blur(self, image: Union[ImageLike, Buffer], sigma: Pair, *, boundary: Names = "clamp", method: str = "deriche",
             derivative: Union[int, Tuple[int, int]] = 0, algorithm: str = "",
             max_truncation_error: Optional[float] = None,
             **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """Blurs with a Gaussian, or differentiates with its derivatives; at one price for any sigma.

        Args:
            image: [height, width], [height, width, channels] or [images, height, width, channels], 1 to 4 channels,
                each filtered alone; float16 (filtered in float32), float32 or float64; or an image file.
            sigma: pixels, 0.5 to 10000; 0 leaves an axis as it is.
            boundary: what lies beyond the edges: "clamp", "zero", "repeat", "reflect" (cba|abc) or "mirror" (cb|abc);
                of a lat-long map ("repeat", "clamp").
            method: "deriche" or "young".
            derivative: 0, 1 (per pixel) or 2 (per pixel squared), by "deriche" alone.
            algorithm: as `filter`.
            max_truncation_error: as `filter`.

        Returns:
            The image, of the same type and shape.

        Source: R. Deriche, "Recursively implementing the Gaussian and its derivatives", 1993; exact boundaries after D.
        Nehab and A. Maximo, "Parallel recursive filtering of infinite input extensions", 2016.
        """
        orders = pair(derivative, "derivative", (int, np.integer))
        kernels = [filters.Gaussian(float(each), method, int(order)) if each or order else None
                   for each, order in zip(pair(sigma, "sigma", (int, float, np.integer, np.floating)), orders)]
        return self._filter(image, kernels, boundary, (algorithm, max_truncation_error), None, call)

    @overload
    def bspline_prefilter(self, image: Buffer, degree: int = ..., *, boundary: Names = ..., algorithm: str = ...,
                          max_truncation_error: Optional[float] = ..., **call: "Unpack[CallOptions]") -> Buffer: ...

    @overload
    def bspline_prefilter(self, image: ImageLike, degree: int = ..., *, boundary: Names = ..., algorithm: str = ...,
                          max_truncation_error: Optional[float] = ..., **call: "Unpack[CallOptions]") -> NDArray: ...

    def bspline_prefilter(self, image: Union[ImageLike, Buffer], degree: int = 3, *, boundary: Names = "mirror",
                          algorithm: str = "", max_truncation_error: Optional[float] = None,
                          **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """The coefficients of the B-spline of degree 3 or 5 through the pixels, along both axes.

        Image, boundary and result are as `blur` has them. Source: M. Unser, A. Aldroubi and M. Eden, "B-spline signal
        processing", 1993.
        """
        kernel = filters.BsplinePrefilter(degree)
        return self._filter(image, [kernel, kernel], boundary, (algorithm, max_truncation_error), None, call)

    @overload
    def filter(self, image: Buffer, *, x: Optional[filters.Kernel] = ..., y: Optional[filters.Kernel] = ...,
               boundary: Names = ..., accumulate: Optional[Union[NDArray, Buffer]] = ..., weight: float = ...,
               algorithm: str = ..., max_truncation_error: Optional[float] = ...,
               **call: "Unpack[CallOptions]") -> Buffer: ...

    @overload
    def filter(self, image: ImageLike, *, x: Optional[filters.Kernel] = ..., y: Optional[filters.Kernel] = ...,
               boundary: Names = ..., accumulate: Optional[Union[NDArray, Buffer]] = ..., weight: float = ...,
               algorithm: str = ..., max_truncation_error: Optional[float] = ...,
               **call: "Unpack[CallOptions]") -> NDArray: ...

    def filter(self, image: Union[ImageLike, Buffer], *, x: Optional[filters.Kernel] = None,
               y: Optional[filters.Kernel] = None, boundary: Names = "clamp",
               accumulate: Optional[Union[NDArray, Buffer]] = None, weight: float = 1.0, algorithm: str = "",
               max_truncation_error: Optional[float] = None,
               **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """Runs a recursive filter along the rows (x), the columns (y), or both.

        Args:
            image: as `blur`.
            x, y: a `Gaussian`, `BsplinePrefilter`, `Exponential` or `Feedback`; None leaves that axis as it is.
            boundary: as `blur`.
            accumulate: of the image's type and shape: the result is accumulate + weight * the filtered image.
            algorithm: "filter-by-lines", "filter-tiled", "filter-on-chip" or "filter-decaying"; without, the fastest.
            max_truncation_error: what may be left out, relative to the image's largest magnitude, 0 to 1; 0: nothing.

        Source: D. Nehab, A. Maximo, R. Lima and H. Hoppe, "GPU-efficient recursive filtering and summed-area tables",
        2011.
        """
        return self._filter(image, [x, y], boundary, (algorithm, max_truncation_error),
                            None if accumulate is None else (accumulate, weight), call)

    def _filter(self, image: Union[ImageLike, Buffer], kernels: Sequence[Optional[filters.Kernel]], boundary: Names,
                way: Tuple[str, Optional[float]], accumulate: Optional[Tuple[Union[NDArray, Buffer], float]],
                options: CallOptions) -> Union[NDArray, Buffer]:
        request = recursive_filter_pb2.ApplyRecursiveFilterRequest()
        for name, kernel, edge in zip("xy", kernels, pair(boundary, "boundary", (str,))):
            if kernel is not None:
                filters.write_axis(getattr(request, name), kernel, edge, name)
        algorithm, error = way
        if algorithm:
            request.method = choose(recursive_filter_pb2.RecursiveFilterMethod, "FILTER_", algorithm, "algorithm")
        if error is not None:
            request.max_truncation_error = error
        source = self._image(image, "image", _FLOATS, batch=True)
        call = Call(self, "ApplyRecursiveFilter", request, options).source(request.image, source, "image")
        if accumulate is not None:
            array, request.weight = accumulate
            call.source(request.accumulate, array if isinstance(array, Buffer) else as_array(array, "accumulate", _FLOATS),
                        "accumulate")
        resident = isinstance(source, Buffer)
        size = _size(source, self)
        return call.run(resident, size).either("image", resident)

    @overload
    def box_filter(self, image: Buffer, radius: Union[int, Tuple[int, int], NDArray, Buffer], *, boundary: Names = ...,
                   max_radius: int = ..., **call: "Unpack[CallOptions]") -> Buffer: ...

    @overload
    def box_filter(self, image: ImageLike, radius: Union[int, Tuple[int, int], NDArray, Buffer], *,
                   boundary: Names = ..., max_radius: int = ..., **call: "Unpack[CallOptions]") -> NDArray: ...

    def box_filter(self, image: Union[ImageLike, Buffer], radius: Union[int, Tuple[int, int], NDArray, Buffer], *,
                   boundary: Names = "exact", max_radius: int = 0,
                   **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """The mean over the box of 2 radius + 1 pixels a side around each pixel; at one price for any radius.

        Args:
            image: [height, width] or [height, width, channels], 1 to 4 channels; uint8, uint16, uint32, int32, float16,
                float32 or float64; or an image file.
            radius: in pixels, for both axes or (along x, along y); or a radius for each pixel, float32 [height, width].
            boundary: "exact" (the mean of what lies inside), "zero", "clamp", "repeat" or "reflect".
            max_radius: of a radius for each pixel, what none exceeds; 0: the image's larger side.

        Returns:
            float32, of the image's shape.

        Source: F. Crow, "Summed-area tables for texture mapping", 1984.
        """
        return self._box_filter(image, radius, (boundary, max_radius), False, call)[0]

    def box_statistics(self, image: Union[ImageLike, Buffer], radius: Union[int, Tuple[int, int], NDArray, Buffer], *,
                       boundary: Names = "exact", max_radius: int = 0,
                       **call: "Unpack[CallOptions]") -> Tuple[Union[NDArray, Buffer], Union[NDArray, Buffer]]:
        """Mean and standard deviation over the box around each pixel, as `box_filter`; not of uint32 and int32."""
        means, deviations = self._box_filter(image, radius, (boundary, max_radius), True, call)
        return means, deviations

    def _box_filter(self, image: Union[ImageLike, Buffer], radius: Any, edges: Tuple[Names, int], deviation: bool,
                    options: CallOptions) -> Sequence[Union[NDArray, Buffer]]:
        request = summed_area_table_pb2.FilterBoxRequest(deviation=deviation)
        boundary, max_radius = edges
        request.boundary_x, request.boundary_y = (
            choose(summed_area_table_pb2.BoxBoundary, "BOX_", each, "boundary")
            for each in pair(boundary, "boundary", (str,)))
        source = self._image(image, "image", SUMMED, batch=False)
        call = Call(self, "FilterBox", request, options).source(request.image, source, "image")
        if isinstance(radius, (Buffer, np.ndarray)):
            radii = radius if isinstance(radius, Buffer) else as_array(radius, "radius", ("float32",), (2,))
            call.source(request.radius_map, radii, "radius")
            request.radius = max_radius
        else:
            request.radius_x, request.radius_y = (
                int(each) for each in pair(radius, "radius", (int, np.integer)))
        resident = isinstance(source, Buffer)
        size = 0 if isinstance(source, EncodedImage) else nbytes("float32", *source.shape)
        result = call.run(resident, (1 + deviation) * (size or self._unknown))
        return [result.either(name, resident) for name in (("image", "deviation") if deviation else ("image",))]

    @property
    def _unknown(self) -> int:
        """For results whose size only the server knows: too large to come inline."""
        return self.capabilities.max_inline_bytes + 1

    # Summed-area tables.

    def summed_area_table(self, image: Union[ImageLike, Buffer], *, accumulator: str = "", squares: bool = False,
                          exclusive: bool = False, precision: str = "plain-sums", wrap: bool = False,
                          **call: "Unpack[CallOptions]") -> SummedAreaTable:
        """The sums over all rows up to y and columns up to x, of which any rectangle's sum takes four reads.

        Args:
            image: as `box_filter`.
            accumulator: dtype of the sums. Without: uint32 of uint8, uint64 of uint16 and uint32, int64 of int32,
                float64 of floats; with squares the one of 64 bits.
            squares: also the sums of the squared pixels, for variances.
            exclusive: begin with a row and a column of zeros, as OpenCV's integral.
            precision: "plain-sums", "mean-subtracted-sums" or "tile-local-sums" (float32 with less lost).
            wrap: let integer sums that could exceed the accumulator wrap around instead of refusing the image.

        Returns:
            A table that stays on the server: `.numpy()` fetches it, `.sum(rectangles)` asks it.

        Source: F. Crow, "Summed-area tables for texture mapping", 1984.
        """
        request = summed_area_table_pb2.BuildSummedAreaTableRequest(exclusive=exclusive, squares=squares)
        if accumulator:
            request.accumulator = choose(array_pb2.ElementType, "", accumulator, "accumulator")
        request.precision = choose(summed_area_table_pb2.SumPrecision, "", precision, "precision")
        if wrap:
            request.overflow = summed_area_table_pb2.WRAP_OVERFLOW
        source = self._image(image, "image", SUMMED)
        result = Call(self, "BuildSummedAreaTable", request, call).source(request.image, source, "image").run(True, 0)
        parts = {name: result.buffer(name) for name in ("sums", "squares", "offsets", "above", "left") if name in result}
        return SummedAreaTable(self, parts, exclusive)

    # Sampling tables.

    def sampling_table(self, weights: Union[ImageLike, Buffer], *, projection: str = "lat-long",
                       method: str = "radix-forest", interpolation: str = "constant", luminance: Any = "rec-709",
                       invalid_weights: str = "refuse", mis_compensation: bool = False,
                       uniform_if_all_zero: bool = False, layered: bool = False,
                       guide_sizes: Tuple[int, int] = (0, 0), **call: "Unpack[CallOptions]") -> SamplingTable:
        """A table from which points are drawn with a density in proportion to the weights, in constant time on average.

        Args:
            weights: [height, width], [height, width, channels] or, of one row, [width]; uint8, float16 or float32; 1 to 4
                channels: one is the weight, of three or four the luminance is; or an image file. `layered`: with the
                number of layers in front.
            projection: "lat-long" (rows are polar angle from +Y, weights times the solid angle), "equal-area" (the
                octahedral map of pbrt-v4) or "plane" (the unit square).
            method: how a cell is found; all but "alias" draw the same samples.
            interpolation: "constant", or "bilinear" between the centres of texels.
            luminance: "rec-709", "rec-2020", "acescg", "average", or three coefficients of red, green and blue.
            invalid_weights: NaN, infinite and negative ones: "refuse" or "clamp".
            mis_compensation: takes the mean off every weight, for renderers that sample the BSDF besides.
            uniform_if_all_zero: instead of refusing a map without light.
            guide_sizes: entries of each row's guide table and of the marginal's; 0: as many as cells.

        Returns:
            A table that stays on the server; `.sample()`, `.pdf()`, `.save()`, and `.local()` for here.

        Source: N. Binder and A. Keller, "Massively Parallel Construction of Radix Tree Forests ...", 2020; O. Karlik et
        al., "MIS Compensation", 2019.
        """
        kinds = sampling_table_pb2
        request = kinds.BuildSamplingTableRequest(mis_compensation=mis_compensation, layered=layered,
                                                  uniform_if_all_zero=uniform_if_all_zero, guide_size=guide_sizes[0],
                                                  marginal_guide_size=guide_sizes[1])
        request.projection = choose(kinds.Projection, "", projection, "projection")
        request.method = choose(kinds.SamplingMethod, "", method, "method")
        request.interpolation = choose(kinds.Interpolation, "", interpolation, "interpolation")
        request.invalid_weights = choose(kinds.InvalidWeights, "", invalid_weights, "invalid_weights")
        if isinstance(luminance, str):
            request.luminance = choose(kinds.Luminance, "", luminance, "luminance")
        else:
            request.luminance = kinds.CUSTOM
            request.luminance_coefficients.extend(float(each) for each in luminance)
        source: Input
        if isinstance(weights, (str, os.PathLike, bytes)):
            source = EncodedImage(weights)
        elif isinstance(weights, (Buffer, EncodedImage)):
            source = weights
        else:
            source = as_array(weights, "weights", ("uint8", "float16", "float32"), (1, 2, 3, 4))
        result = Call(self, "BuildSamplingTable", request, call).source(request.weights, source, "weights").run(True, 0)
        return SamplingTable(resident=result.buffer("table"))

    # KD-trees.

    def kd_tree(self, points: Union[NDArray, Buffer], *, leaf_size: int = 40, split: str = "widest-spread",
                **call: "Unpack[CallOptions]") -> KdTree:
        """A tree over points, of which neighbours are asked: the one that scikit-learn builds of them.

        Args:
            points: [points, dimensions], float32 or float64, 2 to 16 dimensions, no NaN; or [trees, points, dimensions].
            leaf_size: leaves have leaf_size to 2 leaf_size points.
            split: "widest-spread" (scikit-learn's), "round-robin" or "midpoint".

        Returns:
            A tree that stays on the server; `.query()`, `.counts()`, `.lists()`, `.save()`, `.to_sklearn()`.

        Source: J. Bentley, "Multidimensional binary search trees used for associative searching", 1975.
        """
        request = kd_tree_pb2.BuildKdTreeRequest(leaf_size=leaf_size)
        request.split = choose(kd_tree_pb2.KdTreeSplit, "", split, "split")
        source = points if isinstance(points, Buffer) else as_array(points, "points", ("float64", "float32"), (2, 3))
        result = Call(self, "BuildKdTree", request, call).source(request.points, source, "points").run(True, 0)
        parts = {name: result.buffer(name) for name in ("points", "idx_array", "node_data", "node_bounds")}
        return KdTree(self, parts, leaf_size)

    # Run lengths.

    def run_length(self, array: Union[NDArray, Buffer], *, order: str = "by-rows", pixels: bool = False,
                   **call: "Unpack[CallOptions]") -> RunLengths:
        """The runs of equal neighbours of an array: masks, mattes, index images.

        Args:
            array: of any shape and dtype; elements are compared by their bits. bool counts as uint8.
            order: "by-rows", as it lies in memory, or "by-columns" of [..., height, width], as COCO has it.
            pixels: the last extent, 1 to 4, is the channels of a pixel of at most 16 bytes, and runs are of pixels.

        Source: A. Balevic, "Parallel variable-length encoding on GPGPUs", 2009.
        """
        request = run_length_pb2.EncodeRunLengthsRequest(pixels=pixels, length_type=array_pb2.UINT64)
        request.order = choose(run_length_pb2.RunOrder, "", order, "order")
        source = array if isinstance(array, Buffer) else as_array(array, "array")
        resident = isinstance(source, Buffer)
        result = Call(self, "EncodeRunLengths", request, call).source(request.array, source, "array").run(
            resident, source.nbytes + 8 * source.size)
        return RunLengths(result.either("symbols", resident), result.either("lengths", resident), source.shape,
                          order=order, pixels=pixels)

    def decode_run_lengths(self, symbols: Union[NDArray, Buffer], lengths: Union[NDArray, Buffer],
                           shape: Sequence[int], *, order: str = "by-rows", pixels: bool = False,
                           **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """The array of `shape` whose runs these are; a `Buffer` where `symbols` is one."""
        first = symbols if isinstance(symbols, Buffer) else as_array(symbols, "symbols")
        second = lengths if isinstance(lengths, Buffer) else as_array(lengths, "lengths", ("uint32", "uint64"), (1,))
        size = nbytes(first.dtype, *shape)
        request = run_length_pb2.DecodeRunLengthsRequest(pixels=pixels, max_output_bytes=max(size, 1), shape=shape)
        request.order = choose(run_length_pb2.RunOrder, "", order, "order")
        call_ = Call(self, "DecodeRunLengths", request, call).source(request.symbols, first, "symbols")
        resident = isinstance(first, Buffer)
        return call_.source(request.lengths, second, "lengths").run(resident, size).either("array", resident)

    # Brackets and clips.

    def match_brackets(self, text: Union[str, bytes, NDArray, Buffer], *, pairs: Union[str, bytes] = b"",
                       outputs: Sequence[str] = ("partner",), lenient: bool = False,
                       segments: Optional[Union[NDArray, Buffer]] = None,
                       **call: "Unpack[CallOptions]") -> Brackets:
        """Partners, parents and depths in nested structure, as a stack would give them.

        Args:
            text: a str (of which UTF-8 bytes are elements), bytes, uint8 [n]; or int32 [n], tokens: k > 0 opens and -k
                closes kind k, 0 is neutral.
            pairs: of texts, opens and closes in turn; without "()[]{}".
            outputs: of "partner", "parent", "depth", "stack_top", "maximum_depth".
            lenient: brackets without a partner are no error: they get -1.
            segments: int64, the element at which each of many documents begins.

        Raises:
            FailedPrecondition: the brackets are unbalanced; `metadata` has `position`, `found`, `expected`.

        Source: R. Levien, "The stack monoid revisited", 2021.
        """
        request = bracket_match_pb2.MatchBracketsRequest(
            pairs=pairs.encode() if isinstance(pairs, str) else pairs, lenient=lenient)
        for name in outputs:
            request.outputs.append(choose(bracket_match_pb2.BracketOutput, "", name, "outputs"))
        source: Input
        if isinstance(text, Buffer):
            source = text
        elif isinstance(text, (str, bytes)):
            source = np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)
        else:
            source = as_array(text, "text", ("uint8", "int32"), (1,))
        run = Call(self, "MatchBrackets", request, call).source(request.text, source, "text")
        if segments is not None:
            run.source(request.segments, segments if isinstance(segments, Buffer)
                       else as_array(segments, "segments", ("int64",), (1,)), "segments")
        resident = isinstance(source, Buffer)
        result = run.run(resident, 8 * source.size * len(outputs) + 16)
        single = {name: int(result.array(name)[0]) for name in ("maximum_depth", "unmatched") if name in result}
        arrays = {name: result.either(name, resident) for name in OUTPUTS[:4] if name in result}
        return Brackets(maximum_depth=single.get("maximum_depth"), unmatched=single.get("unmatched"), **arrays)

    def intersect_clips(self, elements: Union[NDArray, Buffer], boxes: Union[NDArray, Buffer],
                        **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """What a scene's clips leave of its elements.

        Args:
            elements: uint8 [n]: 0 draws, 1 begins a clip, 2 ends the innermost clip.
            boxes: float32 [n, 4]: x0, y0, x1, y1 of each; infinite where there is no limit, no NaN.

        Returns:
            float32 [n, 4]: each box intersected with those of all clips that enclose it; a `Buffer` where `elements`
            is one.
        """
        request = bracket_match_pb2.IntersectClipsRequest()
        first = elements if isinstance(elements, Buffer) else as_array(elements, "elements", ("uint8",), (1,))
        second = boxes if isinstance(boxes, Buffer) else as_array(boxes, "boxes", ("float32",), (2,))
        run = Call(self, "IntersectClips", request, call).source(request.elements, first, "elements")
        resident = isinstance(first, Buffer)
        return run.source(request.boxes, second, "boxes").run(resident, 16 * first.size).either("bounds", resident)


SUMMED = ("uint8", "uint16", "uint32", "int32", "float16", "float64", "float32")


def _size(source: Input, client: Client) -> int:
    """Bytes of a result that is as large as `source`."""
    return client.capabilities.max_inline_bytes + 1 if isinstance(source, EncodedImage) else source.nbytes


