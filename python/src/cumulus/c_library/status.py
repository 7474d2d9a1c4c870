"""How the library says that a call of it has failed."""

from __future__ import annotations

import ctypes
from typing import Any

from ..errors import Cancelled, DataLoss, Error, from_status, name_of_code


class Status:
    """A cumulus_status."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.handle: Any = ctypes.c_void_p(library.cumulus_status_create())

    def __del__(self) -> None:
        self._library.cumulus_status_release(self.handle)

    def error(self, code: int, address: str, what: str) -> Error:
        """The exception that `what`, a call of the server at `address`, raises with this status."""
        size = ctypes.c_size_t()
        details = self._library.cumulus_status_details(self.handle, ctypes.byref(size))
        trailer = ctypes.string_at(details, size.value) if size.value else b""
        message = self._library.cumulus_status_message(self.handle).decode("utf-8", "replace")
        name = name_of_code(code)
        if name == Cancelled.code and not trailer:
            return Cancelled(f"the {what} was cancelled")
        if name == DataLoss.code and not trailer:
            cure = "download it again"
            return DataLoss(message if cure in message else f"{message}; {cure}", cure=cure)
        return from_status(name, message, trailer, address)
