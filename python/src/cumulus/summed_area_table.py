"""Summed-area tables on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Union

import numpy as np

from .arrays import AnyArray, NDArray, as_array, choose, narrowed
from .buffer import Buffer
from .errors import wrong
from .foreign import imported
from .operation import CallOptions, nbytes
from .v1 import summed_area_table_pb2 as wire

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .operation_base import OperationBase


class SummedAreaTable:
    """The sums over all rows up to y and columns up to x; made by `Client.summed_area_table`.

    Attributes:
        sums: a `Buffer`, of the image's shape (exclusive: a row and a column more).
        squares: likewise, of the squared pixels; or None.
        offsets, above, left: of the precisions that have them; or None.
        exclusive: whether it begins with a row and a column of zeros.
    """

    def __init__(self, client: "OperationBase", parts: Dict[str, Buffer], exclusive: bool) -> None:
        self._client = client
        self.sums = parts["sums"]
        self.squares = parts.get("squares")
        self.offsets = parts.get("offsets")
        self.above = parts.get("above")
        self.left = parts.get("left")
        self.exclusive = exclusive

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of the sums: [height, width] or [height, width, channels], with a row and a column more where they are exclusive."""
        return self.sums.shape

    @property
    def dtype(self) -> Any:
        """Of the sums."""
        return self.sums.dtype

    def __repr__(self) -> str:
        return f"<cumulus.SummedAreaTable {self.dtype.name} {list(self.shape)}{' exclusive' * self.exclusive}>"

    def numpy(self) -> NDArray:
        """Fetches the sums."""
        return self.sums.numpy()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> NDArray:
        return self.sums.__array__(dtype, copy)

    def sum(self, rectangles: Union[AnyArray, Buffer], *, refuse_outside: bool = False,
            **call: "Unpack[CallOptions]") -> Any:
        """Sums over rectangles.

        Args:
            rectangles: int32 [count, 4]: top, left, bottom, right; rows top..bottom - 1 and columns left..right - 1.
            refuse_outside: FailedPrecondition where one is empty or reaches beyond the image, instead of clipping it.

        Returns:
            [count] or [count, channels], of the table's dtype; a `Buffer` where `rectangles` is one.
        """
        return self._ask("sum", "sums", rectangles, refuse_outside, call)

    def mean(self, rectangles: Union[AnyArray, Buffer], *, refuse_outside: bool = False,
             **call: "Unpack[CallOptions]") -> Any:
        """Means over rectangles, float64, as `sum`; NaN of nothing."""
        return self._ask("mean", "means", rectangles, refuse_outside, call)

    def variance(self, rectangles: Union[AnyArray, Buffer], *, refuse_outside: bool = False,
                 **call: "Unpack[CallOptions]") -> Any:
        """Variances over rectangles, float64, as `sum`; of tables with squares."""
        if self.squares is None:
            raise wrong("squares", "the table has none", "summed_area_table(image, squares=True)")
        return self._ask("variance", "variances", rectangles, refuse_outside, call)

    def _ask(self, statistic: str, name: str, rectangles: Union[AnyArray, Buffer], refuse: bool,
             options: CallOptions) -> Any:
        request = wire.SumRectanglesRequest(exclusive=self.exclusive)
        request.statistics.append(choose(wire.RectangleStatistic, "RECTANGLE_", statistic, "statistic"))
        if refuse:
            request.border = wire.REFUSE_RECTANGLES
        call = self._client.begin("SumRectangles", request, options)
        for part in ("sums", "squares", "offsets", "above", "left"):
            buffer = getattr(self, part)
            if buffer is not None and (part != "squares" or name == "variances"):
                call.source(getattr(request, part), buffer, part)
        if isinstance(rectangles, Buffer):
            asked: Union[NDArray, Buffer] = rectangles
        else:
            asked = as_array(narrowed(imported(rectangles, "rectangles"), "rectangles", np.int32), "rectangles", ("int32",))
        if asked.shape[1:] != (4,):
            raise wrong("rectangles", f"has the shape {list(asked.shape)}", "[count, 4]: top, left, bottom, right")
        call.source(request.rectangles, asked, "rectangles")
        resident = isinstance(asked, Buffer)
        return call.run(resident, nbytes("uint64", asked.shape[0], *self.shape[2:])).either(name, resident)
