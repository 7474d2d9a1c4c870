"""Finds the library, and describes its functions and structures (cumulus.h) to ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import warnings
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, Optional, Sequence, Tuple

RELEASE = "0.1.0"  # the package's, and the only one whose library it takes

_lock = threading.Lock()
_process = 0  # that has loaded it


class ChannelOptions(ctypes.Structure):
    """cumulus_channel_options."""

    _fields_ = [("size", c_size_t), ("address", c_char_p), ("tls_ca", c_char_p), ("tls_cert", c_char_p), ("tls_key", c_char_p),
                ("token_file", c_char_p), ("shared_memory_socket", c_char_p), ("joined_uploads", c_int32),
                ("connect_timeout_seconds", c_double), ("dead_after_seconds", c_double)]


class SessionName(ctypes.Structure):
    """cumulus_session_name."""

    _fields_ = [("name", c_char_p), ("instance", c_char_p)]


class TransferOptions(ctypes.Structure):
    """cumulus_transfer_options."""

    _fields_ = [("size", c_size_t), ("timeout_seconds", c_double), ("ttl_nanoseconds", c_int64), ("evictable", c_int32),
                ("checksum", c_int32), ("request_id", c_char_p)]


class Array(ctypes.Structure):
    """cumulus_array."""

    _fields_ = [("type", c_int32), ("rank", c_int32), ("shape", POINTER(c_int64)), ("data", c_void_p), ("size", c_size_t)]


class Destination(ctypes.Structure):
    """cumulus_destination."""

    _fields_ = [("buffer", c_char_p), ("data", c_void_p), ("size", c_size_t)]


class Request(ctypes.Structure):
    """cumulus_request."""

    _fields_ = [("size", c_size_t), ("method", c_char_p), ("message", c_char_p), ("message_size", c_size_t),
                ("timeout_seconds", c_double)]


class Answer(ctypes.Structure):
    """cumulus_answer."""

    _fields_ = [("seconds", c_double), ("work", c_void_p), ("message", c_void_p), ("size", c_size_t)]


class Uploaded(ctypes.Structure):
    """cumulus_uploaded."""

    _fields_ = [("seconds", c_double), ("work", c_void_p), ("buffer", c_char_p)]


_FUNCTIONS: Sequence[Tuple[str, Any, Sequence[Any]]] = (
    ("cumulus_version", c_char_p, ()),
    ("cumulus_status_create", c_void_p, ()),
    ("cumulus_status_release", None, (c_void_p,)),
    ("cumulus_status_message", c_char_p, (c_void_p,)),
    ("cumulus_status_details", c_void_p, (c_void_p, POINTER(c_size_t))),
    ("cumulus_channel_open", c_int32, (POINTER(ChannelOptions), POINTER(c_void_p), c_void_p)),
    ("cumulus_channel_release", None, (c_void_p,)),
    ("cumulus_channel_start_upload", c_int32, (c_void_p, POINTER(SessionName), POINTER(Array), POINTER(TransferOptions),
                                               POINTER(c_void_p), c_void_p)),
    ("cumulus_channel_upload", c_int32, (c_void_p, POINTER(SessionName), POINTER(Array), POINTER(TransferOptions), POINTER(Uploaded),
                                         c_void_p)),
    ("cumulus_channel_start_download", c_int32, (c_void_p, POINTER(SessionName), POINTER(Destination), POINTER(TransferOptions),
                                                 POINTER(c_void_p), c_void_p)),
    ("cumulus_transfer_wait", c_int32, (c_void_p, c_double)),
    ("cumulus_transfer_done", c_size_t, (c_void_p,)),
    ("cumulus_transfer_cancel", None, (c_void_p,)),
    ("cumulus_transfer_result", c_int32, (c_void_p, c_void_p)),
    ("cumulus_transfer_buffer", c_char_p, (c_void_p,)),
    ("cumulus_transfer_checksum", c_uint32, (c_void_p,)),
    ("cumulus_transfer_release", None, (c_void_p,)),
    ("cumulus_channel_allocate", c_int32, (c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p), c_void_p)),
    ("cumulus_memory_release", None, (c_void_p,)),
    ("cumulus_channel_start_call", c_int32, (c_void_p, POINTER(SessionName), POINTER(Request), POINTER(c_void_p), c_void_p)),
    ("cumulus_channel_call", c_int32, (c_void_p, POINTER(SessionName), POINTER(Request), POINTER(Answer), c_void_p)),
    ("cumulus_call_wait", c_int32, (c_void_p, c_double)),
    ("cumulus_call_cancel", None, (c_void_p,)),
    ("cumulus_call_result", c_int32, (c_void_p, POINTER(c_void_p), POINTER(c_size_t), c_void_p)),
    ("cumulus_call_release", None, (c_void_p,)),
)


def find() -> str:
    """CUMULUS_C_LIBRARY, else the one of the package cumulus-server; "": there is none, or it is not wanted."""
    named = os.environ.get("CUMULUS_C_LIBRARY")
    if named is not None:
        return named
    try:
        import cumulus_server
    except ImportError:
        return ""
    return str(cumulus_server.library()) if hasattr(cumulus_server, "library") else ""


def load() -> Optional[Any]:
    """The library; None where there is none that can be used, which a warning says once where one is there. Nor in a child that was
    forked once it was loaded, for which its gRPC has no threads."""
    global _process
    path = find()
    if not path or _process not in (0, os.getpid()):
        return None
    with _lock:  # two threads are not to load it at once
        _process = os.getpid()
        return _load(path)


@functools.lru_cache(maxsize=None)
def _load(path: str) -> Optional[Any]:
    try:
        library = ctypes.CDLL(path)
        for name, result, arguments in _FUNCTIONS:
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
        release = library.cumulus_version().decode()
        problem = "" if release == RELEASE else f"it is of release {release}, and this package of {RELEASE}"
    except (OSError, AttributeError) as failure:
        problem = str(failure)
    if not problem:
        return library
    warnings.warn(f"cumulus does not use {path}: {problem}; transfers are slower without. Install the cumulus-server of this package's "
                  "release, or set CUMULUS_C_LIBRARY to its libcumulus, or to nothing to do without", RuntimeWarning, stacklevel=2)
    return None
