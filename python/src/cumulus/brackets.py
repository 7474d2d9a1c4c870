"""What `Client.match_brackets` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from .arrays import NDArray
from .buffer import Buffer

OUTPUTS = ("partner", "parent", "depth", "stack_top", "maximum_depth")


@dataclass(frozen=True)
class Brackets:
    """Of each element, numbered from 0; -1 says that there is none. What was not asked for is None.

    Attributes:
        partner: the bracket that it pairs with.
        parent: the innermost open that encloses it; of a close, its open's.
        depth: how many opens enclose it.
        stack_top: the top of the stack after it.
        maximum_depth: the largest size of the stack.
        unmatched: how many brackets have no partner; of lenient calls.
    """

    partner: Optional[Union[NDArray, Buffer]] = None
    parent: Optional[Union[NDArray, Buffer]] = None
    depth: Optional[Union[NDArray, Buffer]] = None
    stack_top: Optional[Union[NDArray, Buffer]] = None
    maximum_depth: Optional[int] = None
    unmatched: Optional[int] = None
