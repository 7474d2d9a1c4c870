"""Arrays as their runs of equal neighbours."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import coco, container
from .arrays import NDArray
from .buffer import Buffer
from .errors import wrong


class RunLengths:
    """Runs of equal neighbours, each a symbol and a length; made by `Client.run_length`, `load` and `from_coco`.

    Runs that stay on the server are fetched when something here first needs them.

    Attributes:
        shape: of the array.
        order: "by-rows" or "by-columns".
        pixels: whether the last extent is the channels of a pixel, and runs are of pixels.
    """

    def __init__(self, symbols: Union[NDArray, Buffer], lengths: Union[NDArray, Buffer], shape: Sequence[int], *,
                 order: str = "by-rows", pixels: bool = False) -> None:
        self._symbols = symbols
        self._lengths = lengths
        self.shape: Tuple[int, ...] = tuple(shape)
        self.order = order.lower().replace("_", "-")
        self.pixels = pixels
        self._fetched: Optional[container.Content] = None
        self._ends: Optional[NDArray] = None

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Of the array's elements."""
        return self._symbols.dtype

    @property
    def resident(self) -> bool:
        """Whether the runs stay on a server."""
        return isinstance(self._symbols, Buffer)

    @property
    def _content(self) -> container.Content:
        if self._fetched is None:
            symbols, lengths = (part.numpy() if isinstance(part, Buffer) else part
                                for part in (self._symbols, self._lengths))
            self._fetched = container.Content(symbols, lengths.astype(np.uint64), self.shape, self.pixels,
                                              self.order == "by-columns", False)
        return self._fetched

    @property
    def symbols(self) -> NDArray:
        """[runs], or [runs, channels] of pixels; of the array's dtype."""
        return self._content.symbols

    @property
    def lengths(self) -> NDArray:
        """[runs], uint64."""
        return self._content.lengths

    def __len__(self) -> int:
        """The number of runs."""
        return int(self._lengths.shape[0])

    def __repr__(self) -> str:
        return f"<cumulus.RunLengths {self.dtype.name} {list(self.shape)}, {len(self)} runs {self.order}>"

    def decode(self) -> Union[NDArray, Buffer]:
        """The array: of runs on a server a `Buffer` there, otherwise a numpy array, decoded here."""
        if isinstance(self._symbols, Buffer):
            return self._symbols.client.decode_run_lengths(self._symbols, self._lengths, self.shape, order=self.order,
                                                           pixels=self.pixels)
        return container.decode(self._content)

    def numpy(self) -> NDArray:
        """The array, here."""
        decoded = self.decode()
        return decoded.numpy() if isinstance(decoded, Buffer) else decoded

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> NDArray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        """A part of the array, as numpy's basic indexing gives it, without decoding the rest.

        Each element is found by bisection of the runs.
        """
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > len(self.shape):
            raise IndexError(f"{len(keys)} indices of an array of {len(self.shape)} extents")
        keys += (slice(None),) * (len(self.shape) - len(keys))
        units = len(self.shape) - self.pixels
        positions: Any = np.int64(0)
        for extent, stride, index in zip(self.shape, self._strides(), keys[:units]):
            if not isinstance(index, (int, np.integer, slice)):
                raise TypeError(f"index {index!r}; whole numbers and slices are right")
            positions = positions[..., None] if isinstance(index, slice) else positions
            positions = positions + np.arange(extent)[index] * stride
        if self._ends is None:
            self._ends = np.cumsum(self.lengths).astype(np.int64)
        found = self.symbols[np.searchsorted(self._ends, positions, side="right")]
        return found[(..., keys[-1])] if self.pixels else found

    def _strides(self) -> List[int]:
        """How far apart neighbours along each extent are among the stored elements."""
        extents = list(self.shape[: len(self.shape) - self.pixels])
        by_columns = self.order == "by-columns"
        if by_columns:
            extents[-2:] = extents[:-3:-1]
        strides = [int(np.prod(extents[i + 1:], dtype=np.int64)) for i in range(len(extents))]
        if by_columns:
            strides[-2:] = strides[:-3:-1]
        return strides

    @property
    def area(self) -> int:
        """The elements (pixels) that are not 0, without decoding."""
        filled = self.symbols != 0
        return int(self.lengths[filled.any(axis=1) if self.pixels else filled].sum())

    def _counts(self) -> List[NDArray]:
        """COCO's lengths of each mask."""
        if self.dtype != np.uint8 or self.pixels or len(self.shape) not in (2, 3):
            raise wrong("mask", f"{self.dtype.name} {list(self.shape)} is no mask",
                        "uint8 or bool [height, width] or [masks, height, width]")
        if self.order == "by-columns" and len(self.shape) == 2:
            return [coco.alternating(self.symbols, self.lengths)]
        masks = self.numpy().reshape(-1, *self.shape[-2:])
        runs = (container.encode(mask, by_columns=True) for mask in masks)
        return [coco.alternating(each.symbols, each.lengths) for each in runs]

    def to_coco(self) -> Any:
        """{"size": [height, width], "counts": text} as pycocotools has it; of [masks, height, width] a list of them."""
        size = [int(extent) for extent in self.shape[-2:]]
        masks = [{"size": size, "counts": coco.text_of(counts)} for counts in self._counts()]
        return masks[0] if len(self.shape) == 2 else masks

    @property
    def box(self) -> Any:
        """x, y, width, height of the smallest box around the ones of a mask; a list of [masks, height, width]."""
        boxes = [coco.box_of(counts, self.shape[-2]) for counts in self._counts()]
        return boxes[0] if len(self.shape) == 2 else boxes

    @classmethod
    def from_coco(cls, mask: Mapping[str, Any]) -> "RunLengths":
        """The runs of `mask`, {"size": [height, width], "counts": text, bytes or a list of lengths}."""
        height, width = (int(extent) for extent in mask["size"])
        counts = mask["counts"]
        if isinstance(counts, (str, bytes)):
            lengths = coco.counts_of(counts, height, width)
        else:
            lengths = np.asarray(counts, np.int64)
            if int(lengths.sum()) != height * width or (lengths.size and lengths.min() < 0):
                raise wrong("counts", f"they add up to {int(lengths.sum())}", f"lengths of {height} x {width} pixels")
        symbols = (np.arange(lengths.size) % 2).astype(np.uint8)
        keep = lengths > 0
        return cls(symbols[keep], lengths[keep].astype(np.uint64), (height, width), order="by-columns")

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a run-length container, .rle, that the command line and the C++ library read."""
        with open(path, "wb") as file:
            file.write(container.pack(self._content))

    @classmethod
    def from_bytes(cls, data: bytes) -> "RunLengths":
        """Of a container's bytes; InvalidArgument where they are none."""
        content = container.parse(data)
        if content.raw:
            content = container.encode(container.decode(content), pixels=content.pixels)
        return cls(content.symbols, content.lengths, content.shape,
                   order="by-columns" if content.by_columns else "by-rows", pixels=content.pixels)

    def plot(self, axes: Any = None) -> Any:
        """Draws the mask, with the box around its ones; needs matplotlib. Returns the axes."""
        from .plotting import plot_runs

        return plot_runs(self, axes)

    def _repr_html_(self) -> str:
        from .plotting import html

        facts: Dict[str, Any] = {"shape": list(self.shape), "dtype": self.dtype.name, "runs": len(self),
                                 "order": self.order}
        return html(self, "Run lengths", facts)
