"""The client's operations that make or take structures: sampling tables, KD-trees, runs, brackets and clips."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

import numpy as np

from .arrays import AnyArray, NDArray, choose, narrowed
from .brackets import OUTPUTS, Brackets
from .buffer import Buffer, EncodedImage
from .kd_tree import KdTree
from .operation import Call, CallOptions, ImageLike, Input, nbytes, pair, whole
from .operation_base import OperationBase
from .run_length import RunLengths
from .sampling_table import SamplingTable
from .v1 import array_pb2, bracket_match_pb2, kd_tree_pb2, run_length_pb2, sampling_table_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack


class StructureOperations(OperationBase):
    """A part of `Client`."""

    # Sampling tables.

    def sampling_table(self, weights: Union[ImageLike, Buffer], *, projection: str = "lat-long",
                       method: str = "balanced-forest", interpolation: str = "constant", luminance: Any = "rec-709",
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
        guides = [whole(size, "guide_sizes", 0, 2**32 - 1) for size in pair(guide_sizes, "guide_sizes", (int, np.integer))]
        request = kinds.BuildSamplingTableRequest(mis_compensation=mis_compensation, layered=layered,
                                                  uniform_if_all_zero=uniform_if_all_zero, guide_size=guides[0],
                                                  marginal_guide_size=guides[1])
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
            source = self.given(weights, "weights", ("uint8", "float16", "float32"), (1, 2, 3, 4))
        names = (("guide_size", "guide_sizes[0]"), ("marginal_guide_size", "guide_sizes[1]"), ("luminance_coefficients", "luminance"))
        result = self.begin("BuildSamplingTable", request, call).called(names).source(request.weights, source, "weights").run(True, 0)
        return SamplingTable(resident=result.buffer("table"))

    # KD-trees.

    def kd_tree(self, points: Union[AnyArray, Buffer], *, leaf_size: int = 20, split: str = "widest-spread",
                medians: str = "exact", payload: Optional[Union[AnyArray, Buffer]] = None,
                **call: "Unpack[CallOptions]") -> KdTree:
        """A tree over points, of which neighbours are asked: the one that scikit-learn builds of them.

        Args:
            points: [points, dimensions], float32 or float64, 2 to 16 dimensions, no NaN; or [trees, points, dimensions].
            leaf_size: leaves have leaf_size to 2 leaf_size points.
            split: "widest-spread" (scikit-learn's), "round-robin" or "midpoint".
            medians: "exact", or "sampled": where a GPU can, a faster build of a tree that is searched once and thrown away,
                whose leaves have up to some 8 leaf_size points; of 2^17 to 10^8 float32 points in 2 or 3 dimensions, leaf_size 3 to 49. Other
                trees are exact. Searches of both are as exact.
            payload: what goes with each point, [points, ...] of any dtype: `KdTree.payload` has it in the tree's order.

        Returns:
            A tree that stays on the server; `.query()`, `.counts()`, `.lists()`, `.save()`, `.to_sklearn()`.

        Source: J. Bentley, "Multidimensional binary search trees used for associative searching", 1975.
        """
        request = kd_tree_pb2.BuildKdTreeRequest(leaf_size=whole(leaf_size, "leaf_size", -(2**31), 2**31 - 1))
        request.split = choose(kd_tree_pb2.KdTreeSplit, "", split, "split")
        request.medians = choose(kd_tree_pb2.KdTreeMedians, "MEDIANS_", medians, "medians")
        result = self._build_tree(request, points, payload, call).run(True, 0)
        names = ("points", "idx_array", "node_data", "node_bounds", "payload")
        return KdTree(self, {name: result.buffer(name) for name in names if name in result}, leaf_size)

    def _build_tree(self, request: kd_tree_pb2.BuildKdTreeRequest, points: Union[AnyArray, Buffer],
                    payload: Optional[Union[AnyArray, Buffer]], options: CallOptions) -> Call:
        source = points if isinstance(points, Buffer) else self.given(points, "points", ("float64", "float32"), (2, 3))
        run = self.begin("BuildKdTree", request, options).source(request.points, source, "points")
        if payload is not None:
            run.source(request.payload, payload if isinstance(payload, Buffer) else self.given(payload, "payload"),
                       "payload")
        return run

    def left_balanced_kd_tree(self, points: Union[AnyArray, Buffer],
                              **call: "Unpack[CallOptions]") -> Tuple[Union[NDArray, Buffer], Union[NDArray, Buffer]]:
        """Points arranged as the implicit left-balanced tree, for other programs to search.

        Returns:
            points and idx_array, int64, node after node: node i has the children 2 i + 1 and 2 i + 2, where these are
            less than the number of points, and cuts across axis depth modulo dimensions. `Buffer`s where `points` is one.
        """
        request = kd_tree_pb2.BuildKdTreeRequest(layout=kd_tree_pb2.LEFT_BALANCED)
        resident = isinstance(points, Buffer)
        size = points.nbytes + 8 * points.size if isinstance(points, (np.ndarray, Buffer)) else self._unknown
        result = self._build_tree(request, points, None, call).run(resident, size)
        return result.either("points", resident), result.either("idx_array", resident)

    # Run lengths.

    def run_length(self, array: Union[AnyArray, Buffer], *, order: str = "by-rows", pixels: bool = False,
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
        source = array if isinstance(array, Buffer) else self.given(array, "array")
        resident = isinstance(source, Buffer)
        result = self.begin("EncodeRunLengths", request, call).source(request.array, source, "array").run(
            resident, source.nbytes + 8 * source.size)
        return RunLengths(result.either("symbols", resident), result.either("lengths", resident), source.shape,
                          order=order, pixels=pixels)

    def decode_run_lengths(self, symbols: Union[AnyArray, Buffer], lengths: Union[AnyArray, Buffer],
                           shape: Sequence[int], *, order: str = "by-rows", pixels: bool = False,
                           **call: "Unpack[CallOptions]") -> Union[NDArray, Buffer]:
        """The array whose runs these are.

        Args:
            symbols: [runs], the value of each, or [runs, channels] of pixels; of the array's dtype.
            lengths: uint32 or uint64 [runs], the elements (pixels) of each, which add up to those of the array.
            shape: the array's.
            order, pixels: as `run_length` had them.

        Returns:
            The array; a `Buffer` where `symbols` is one.
        """
        first = symbols if isinstance(symbols, Buffer) else self.given(symbols, "symbols")
        second = lengths if isinstance(lengths, Buffer) else self.given(lengths, "lengths", ("uint32", "uint64"), (1,))
        size = nbytes(first.dtype, *shape)
        request = run_length_pb2.DecodeRunLengthsRequest(pixels=pixels, max_output_bytes=max(size, 1), shape=shape)
        request.order = choose(run_length_pb2.RunOrder, "", order, "order")
        call_ = self.begin("DecodeRunLengths", request, call).source(request.symbols, first, "symbols")
        resident = isinstance(first, Buffer)
        return call_.source(request.lengths, second, "lengths").run(resident, size).either("array", resident)

    # Brackets and clips.

    def match_brackets(self, text: Union[str, bytes, AnyArray, Buffer], *, pairs: Union[str, bytes] = b"",
                       outputs: Sequence[str] = ("partner",), lenient: bool = False,
                       segments: Optional[Union[AnyArray, Buffer]] = None,
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
            tokens = text if getattr(text, "dtype", None) == np.uint8 else narrowed(text, "text", np.int32)
            source = self.given(tokens, "text", ("uint8", "int32"), (1,))
        run = self.begin("MatchBrackets", request, call).source(request.text, source, "text")
        if segments is not None:
            run.source(request.segments, segments if isinstance(segments, Buffer)
                       else self.given(segments, "segments", ("int64",), (1,)), "segments")
        resident = isinstance(source, Buffer)
        result = run.run(resident, 8 * source.size * len(outputs) + 16)
        single = {name: int(result.array(name)[0]) for name in ("maximum_depth", "unmatched") if name in result}
        arrays = {name: result.either(name, resident) for name in OUTPUTS[:4] if name in result}
        return Brackets(maximum_depth=single.get("maximum_depth"), unmatched=single.get("unmatched"), **arrays)

    def intersect_clips(self, elements: Union[AnyArray, Buffer], boxes: Union[AnyArray, Buffer],
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
        first = elements if isinstance(elements, Buffer) else self.given(narrowed(elements, "elements", np.uint8), "elements", ("uint8",), (1,))
        limits = np.asarray(boxes, np.float32) if isinstance(boxes, (list, tuple)) else boxes  # a list's numbers have no type of their own
        second = limits if isinstance(limits, Buffer) else self.given(limits, "boxes", ("float32",), (2,))
        run = self.begin("IntersectClips", request, call).source(request.elements, first, "elements")
        resident = isinstance(first, Buffer)
        return run.source(request.boxes, second, "boxes").run(resident, 16 * first.size).either("bounds", resident)
