"""The client's operations on images: recursive filters, box filters and summed-area tables."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union, overload

import numpy as np

from . import filters
from .arrays import AnyArray, NDArray, check_image, choose
from .buffer import Buffer, EncodedImage
from .errors import InvalidArgument, Names as ArgumentNames, name_arguments, wrong
from .foreign import is_array
from .operation import CallOptions, ImageLike, Input, nbytes, pair, whole
from .operation_base import OperationBase
from .summed_area_table import SummedAreaTable
from .v1 import array_pb2, recursive_filter_pb2, summed_area_table_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack

Pair = Union[float, Tuple[float, float]]
Names = Union[str, Tuple[str, str]]

FILTERED = ("float16", "float64", "float32")
POLICIES = {"refuse": array_pb2.REFUSE_NON_FINITE, "clamp": array_pb2.CLAMP_NON_FINITE, "keep": array_pb2.KEEP_NON_FINITE}
SUMMED = ("uint8", "uint16", "uint32", "int32", "float16", "float64", "float32")


def _policy(non_finite: str) -> "array_pb2.NonFinitePolicy":
    if non_finite not in POLICIES:
        raise wrong("non_finite", f"is {non_finite!r}", "'refuse', 'clamp' or 'keep'")
    return POLICIES[non_finite]


def _names_of_kernel(kernel: str, x: str, y: str) -> ArgumentNames:
    return (f"x.{kernel}.", x), (f"y.{kernel}.", y)


_NAMES: ArgumentNames = (("x.boundary", "boundary"), ("y.boundary", "boundary"), ("method", "algorithm"))
_BLUR_NAMES = (*_names_of_kernel("gaussian", "", ""), *_NAMES)
_PREFILTER_NAMES = (*_names_of_kernel("bspline_prefilter", "", ""), *_NAMES)
_FILTER_NAMES = tuple(name for kernel in ("gaussian", "bspline_prefilter", "exponential", "feedback")
                      for name in _names_of_kernel(kernel, "x.", "y.")) + tuple(_NAMES)
_BOX_NAMES: ArgumentNames = (("boundary_x", "boundary"), ("boundary_y", "boundary"), ("radius_x", "radius"), ("radius_y", "radius"),
                             ("radius_map", "radius"), ("radius", "max_radius"))

Way = Tuple[str, Optional[float], str]
"""algorithm, max_truncation_error and non_finite of a filter."""


def _filter_request(kernels: Sequence[Optional[filters.Kernel]], boundary: Names,
                    way: Way) -> recursive_filter_pb2.ApplyRecursiveFilterRequest:
    """All of it but the images."""
    request = recursive_filter_pb2.ApplyRecursiveFilterRequest()
    for name, kernel, edge in zip("xy", kernels, pair(boundary, "boundary", (str,))):
        if kernel is not None:
            filters.write_axis(getattr(request, name), kernel, edge, name)
    algorithm, error, non_finite = way
    request.non_finite = _policy(non_finite)
    if algorithm:
        request.method = choose(recursive_filter_pb2.RecursiveFilterMethod, "FILTER_", algorithm, "algorithm")
    if error is not None:
        request.max_truncation_error = error
    return request


def _new_blur_request(sigma: Pair, derivative: Union[int, Tuple[int, int]], method: str, boundary: Names, way: Way) -> bytes:
    orders = pair(derivative, "derivative", (int, np.integer))
    kernels = [filters.Gaussian(float(each), method, int(order)) if each or order else None
               for each, order in zip(pair(sigma, "sigma", (int, float, np.integer, np.floating)), orders)]
    if kernels == [None, None]:
        raise wrong("sigma", f"is {sigma!r}", "0.5 to 10000 pixels along one axis at least")
    return _filter_request(kernels, boundary, way).SerializeToString()


_kept_blur_request = functools.lru_cache(maxsize=64, typed=True)(_new_blur_request)


def _blur_request(*arguments: Any) -> bytes:
    """Of an ApplyRecursiveFilterRequest, all but the images. Those of blurs like earlier ones, of the next frame for instance, are kept."""
    try:
        return _kept_blur_request(*arguments)
    except TypeError:  # of what has no hash, such as lists
        return _new_blur_request(*arguments)


class ImageOperations(OperationBase):
    """A part of `Client`."""

    # Filters.

    @overload
    def blur(self, image: Buffer, sigma: Pair, *, boundary: Names = ..., method: str = ...,
             derivative: Union[int, Tuple[int, int]] = ..., algorithm: str = ...,
             max_truncation_error: Optional[float] = ..., non_finite: str = ...,
             **call: "Unpack[CallOptions]") -> Buffer: ...

    @overload
    def blur(self, image: ImageLike, sigma: Pair, *, boundary: Names = ..., method: str = ...,
             derivative: Union[int, Tuple[int, int]] = ..., algorithm: str = ...,
             max_truncation_error: Optional[float] = ..., non_finite: str = ...,
             **call: "Unpack[CallOptions]") -> NDArray: ...

    def blur(self, image: Union[ImageLike, Buffer], sigma: Pair, *, boundary: Names = "clamp", method: str = "auto",
             derivative: Union[int, Tuple[int, int]] = 0, algorithm: str = "",
             max_truncation_error: Optional[float] = None, non_finite: str = "refuse",
             **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """Blurs with a Gaussian, or differentiates with its derivatives; at one price for any sigma.

        Args:
            image: [height, width], [height, width, channels] or [images, height, width, channels], 1 to 4 channels,
                each filtered alone; float16 (filtered in float32), float32 or float64; or an image file.
            sigma: pixels, 0.5 to 10000; 0 leaves an axis as it is.
            boundary: what lies beyond the edges: "clamp", "zero", "repeat", "reflect" (cba|abc), "mirror" (cb|abc) or
                "exact" (nothing: the mean of what lies inside; not of derivatives); of a lat-long map ("repeat", "clamp").
            method: "fir", whose result of pixels of 0 or more is 0 or more and errs relative to each pixel, also
                beside a sun; "deriche" or "young", which err relative to the image's peak; "auto": "fir", and
                "deriche" for derivatives and with an algorithm or a max_truncation_error.
            derivative: 0, 1 (per pixel) or 2 (per pixel squared), by "deriche" alone.
            algorithm: as `filter`.
            max_truncation_error: as `filter`.
            non_finite: as `filter`.

        Returns:
            The image, of the same type and shape.

        Source: R. Deriche, "Recursively implementing the Gaussian and its derivatives", 1993; exact boundaries after D.
        Nehab and A. Maximo, "Parallel recursive filtering of infinite input extensions", 2016.
        """
        head = _blur_request(sigma, derivative, method, boundary, (algorithm, max_truncation_error, non_finite))
        if type(image) is Buffer and not call:
            check_image(image.shape, "image", batch=True)
            try:
                there = self.run_on("ApplyRecursiveFilter", head, image)
            except InvalidArgument as error:
                name_arguments(error, _BLUR_NAMES)
                raise
            if there is not None:
                return there
        return self._filter(image, recursive_filter_pb2.ApplyRecursiveFilterRequest.FromString(head), _BLUR_NAMES, None, call)

    @overload
    def bspline_prefilter(self, image: Buffer, degree: int = ..., *, boundary: Names = ..., algorithm: str = ...,
                          max_truncation_error: Optional[float] = ..., non_finite: str = ...,
             **call: "Unpack[CallOptions]") -> Buffer: ...

    @overload
    def bspline_prefilter(self, image: ImageLike, degree: int = ..., *, boundary: Names = ..., algorithm: str = ...,
                          max_truncation_error: Optional[float] = ..., non_finite: str = ...,
             **call: "Unpack[CallOptions]") -> NDArray: ...

    def bspline_prefilter(self, image: Union[ImageLike, Buffer], degree: int = 3, *, boundary: Names = "mirror",
                          algorithm: str = "", max_truncation_error: Optional[float] = None, non_finite: str = "refuse",
                          **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """The coefficients of the B-spline of degree 3 or 5 through the pixels, along both axes.

        Arguments other than `degree` are as `blur` has them (boundary: all but "exact"), and so is the result. Source: M. Unser, A. Aldroubi and M. Eden, "B-spline signal
        processing", 1993.
        """
        kernel = filters.BsplinePrefilter(degree)
        request = _filter_request([kernel, kernel], boundary, (algorithm, max_truncation_error, non_finite))
        return self._filter(image, request, _PREFILTER_NAMES, None, call)

    @overload
    def filter(self, image: Buffer, *, x: Optional[filters.Kernel] = ..., y: Optional[filters.Kernel] = ...,
               boundary: Names = ..., accumulate: Optional[Union[AnyArray, Buffer]] = ..., weight: float = ...,
               algorithm: str = ..., max_truncation_error: Optional[float] = ..., non_finite: str = ...,
               **call: "Unpack[CallOptions]") -> Buffer: ...

    @overload
    def filter(self, image: ImageLike, *, x: Optional[filters.Kernel] = ..., y: Optional[filters.Kernel] = ...,
               boundary: Names = ..., accumulate: Optional[Union[AnyArray, Buffer]] = ..., weight: float = ...,
               algorithm: str = ..., max_truncation_error: Optional[float] = ..., non_finite: str = ...,
               **call: "Unpack[CallOptions]") -> NDArray: ...

    def filter(self, image: Union[ImageLike, Buffer], *, x: Optional[filters.Kernel] = None,
               y: Optional[filters.Kernel] = None, boundary: Names = "clamp",
               accumulate: Optional[Union[AnyArray, Buffer]] = None, weight: float = 1.0, algorithm: str = "",
               max_truncation_error: Optional[float] = None, non_finite: str = "refuse",
               **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """Runs a recursive filter along the rows (x), the columns (y), or both.

        Args:
            image: as `blur`.
            x, y: a `Gaussian`, `BsplinePrefilter`, `Exponential` or `Feedback`; None leaves that axis as it is.
            boundary: as `blur`; "exact" with a `Gaussian` that blurs or an `Exponential`.
            accumulate: of the image's type and shape: the result is accumulate + weight * the filtered image.
            algorithm: "filter-by-lines", "filter-tiled", "filter-on-chip" or "filter-decaying"; without, the fastest.
            max_truncation_error: what may be left out, relative to the image's largest magnitude, 0 to 1; 0: nothing.
            non_finite: NaN and infinite pixels: "refuse" (FailedPrecondition, with the first one's position), "clamp"
                (NaN to 0, an infinity to the image's largest finite magnitude, at least 65504) or "keep".

        Source: D. Nehab, A. Maximo, R. Lima and H. Hoppe, "GPU-efficient recursive filtering and summed-area tables",
        2011.
        """
        return self._filter(image, _filter_request([x, y], boundary, (algorithm, max_truncation_error, non_finite)), _FILTER_NAMES,
                            None if accumulate is None else (accumulate, weight), call)

    def _filter(self, image: Union[ImageLike, Buffer], request: recursive_filter_pb2.ApplyRecursiveFilterRequest,
                names: ArgumentNames, accumulate: Optional[Tuple[Union[AnyArray, Buffer], float]], options: CallOptions) -> Union[NDArray, Buffer]:
        source = self._image(image, "image", FILTERED, batch=True)
        call = self.begin("ApplyRecursiveFilter", request, options).called(names).source(request.image, source, "image")
        if accumulate is not None:
            array, request.weight = accumulate
            call.source(request.accumulate, array if isinstance(array, Buffer) else self.given(array, "accumulate", FILTERED),
                        "accumulate")
        resident = isinstance(source, Buffer)
        size = self._size(source)
        return call.run(resident, size).either("image", resident)

    @overload
    def box_filter(self, image: Buffer, radius: Union[int, Tuple[int, int], AnyArray, Buffer], *, boundary: Names = ...,
                   max_radius: int = ..., non_finite: str = ..., **call: "Unpack[CallOptions]") -> Buffer: ...

    @overload
    def box_filter(self, image: ImageLike, radius: Union[int, Tuple[int, int], AnyArray, Buffer], *,
                   boundary: Names = ..., max_radius: int = ..., non_finite: str = ...,
                   **call: "Unpack[CallOptions]") -> NDArray: ...

    def box_filter(self, image: Union[ImageLike, Buffer], radius: Union[int, Tuple[int, int], AnyArray, Buffer], *,
                   boundary: Names = "clamp", max_radius: int = 0, non_finite: str = "refuse",
                   **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """The mean over the box of 2 radius + 1 pixels a side around each pixel; at one price for any radius.

        Args:
            image: [height, width] or [height, width, channels], 1 to 4 channels; uint8, uint16, uint32, int32, float16,
                float32 or float64; or an image file.
            radius: in pixels, for both axes or (along x, along y); or a radius for each pixel, float32 [height, width].
            boundary: as `blur` has them.
            max_radius: of a radius for each pixel, what none exceeds; 0: the image's larger side.
            non_finite: as `filter`; of images of floats.

        Returns:
            float32, of the image's shape.

        Source: F. Crow, "Summed-area tables for texture mapping", 1984.
        """
        return self._box_filter(image, radius, (boundary, max_radius, non_finite), False, call)[0]

    def box_statistics(self, image: Union[ImageLike, Buffer], radius: Union[int, Tuple[int, int], AnyArray, Buffer], *,
                       boundary: Names = "clamp", max_radius: int = 0, non_finite: str = "refuse",
                       **call: "Unpack[CallOptions]") -> Tuple[Union[NDArray, Buffer], Union[NDArray, Buffer]]:
        """Mean and standard deviation over the box around each pixel; arguments as `box_filter` has them, but for uint32 and int32 images."""
        means, deviations = self._box_filter(image, radius, (boundary, max_radius, non_finite), True, call)
        return means, deviations

    def _box_filter(self, image: Union[ImageLike, Buffer], radius: Any, edges: Tuple[Names, int, str], deviation: bool,
                    options: CallOptions) -> Sequence[Union[NDArray, Buffer]]:
        request = summed_area_table_pb2.FilterBoxRequest(deviation=deviation)
        boundary, max_radius, non_finite = edges
        request.non_finite = _policy(non_finite)
        request.boundary_x, request.boundary_y = (
            choose(summed_area_table_pb2.BoxBoundary, "BOX_", each, "boundary")
            for each in pair(boundary, "boundary", (str,)))
        source = self._image(image, "image", SUMMED, batch=False)
        call = self.begin("FilterBox", request, options).called(_BOX_NAMES).source(request.image, source, "image")
        if isinstance(radius, Buffer) or is_array(radius):
            radii = radius if isinstance(radius, Buffer) else self.given(radius, "radius", ("float32",), (2,))
            call.source(request.radius_map, radii, "radius")
            request.radius = whole(max_radius, "max_radius", -(2**31), 2**31 - 1)
        else:
            request.radius_x, request.radius_y = (
                int(each) for each in pair(radius, "radius", (int, np.integer)))
        resident = isinstance(source, Buffer)
        size = 0 if isinstance(source, EncodedImage) else nbytes("float32", *source.shape)
        result = call.run(resident, (1 + deviation) * (size or self._unknown))
        return [result.either(name, resident) for name in (("image", "deviation") if deviation else ("image",))]

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
        result = self.begin("BuildSummedAreaTable", request, call).source(request.image, source, "image").run(True, 0)
        parts = {name: result.buffer(name) for name in ("sums", "squares", "offsets", "above", "left") if name in result}
        return SummedAreaTable(self, parts, exclusive)

    def _image(self, image: Union[ImageLike, Buffer], field: str, dtypes: Sequence[str], batch: bool = False) -> Input:
        if isinstance(image, (str, os.PathLike, bytes)):
            return EncodedImage(image)
        if isinstance(image, EncodedImage):
            return image
        array = image if isinstance(image, Buffer) else self.given(image, field, dtypes)
        if array.ndim or not isinstance(array, Buffer):  # a pipeline's arrays have no shape yet
            check_image(array.shape, field, batch)
        return array

    def _size(self, source: Input) -> int:
        """Bytes of a result that is as large as `source`."""
        return self._unknown if isinstance(source, EncodedImage) else source.nbytes
