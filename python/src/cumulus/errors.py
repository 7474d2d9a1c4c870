"""What a call that fails raises: an exception a code, with the field that is wrong and the cure."""

from __future__ import annotations

from typing import Callable, Dict, Mapping, Optional, Sequence, Tuple, Type

from . import wire


class Error(Exception):
    """Any failure of a call.

    Attributes:
        code: the gRPC code's name, "INVALID_ARGUMENT".
        reason: why, as a constant to compare with: "INVALID_FIELD", "QUEUE_FULL", "SESSION_EXPIRED"; "" where it was
            found on this side.
        field: the argument that is wrong, "sigma"; "" where it is none. What a kernel of `Client.filter` has is named with
            its axis, "x.sigma", and what a step of a pipeline has with the step, "steps[2].filter_box.radius".
        cure: what would be right, as a clause; "" where nobody knows.
        metadata: facts by name, such as the first offending position of an input.
        violations: (field, what would be right) of all fields that are wrong; for quotas (what ran out, how).
        retry_delay: seconds until it is worth trying again. The call has already been repeated within its deadline.
    """

    code = "UNKNOWN"

    def __init__(self, message: str, *, field: str = "", cure: str = "", reason: str = "",
                 metadata: Optional[Mapping[str, str]] = None, violations: Sequence[Tuple[str, str]] = (),
                 retry_delay: Optional[float] = None) -> None:
        super().__init__(message)
        self.field = field
        self.cure = cure
        self.reason = reason
        self.metadata: Dict[str, str] = dict(metadata or {})
        self.violations = list(violations)
        self.retry_delay = retry_delay


class InvalidArgument(Error, ValueError):
    """An input or an option is wrong; `field` names it, `cure` says what would be right."""

    code = "INVALID_ARGUMENT"


class FailedPrecondition(Error, ValueError):
    """The input is well-formed and has no answer; `reason` and `metadata` say what stands in the way."""

    code = "FAILED_PRECONDITION"


class OutOfRange(Error, IndexError):
    code = "OUT_OF_RANGE"


class NotFound(Error, LookupError):
    """A buffer, or the session that owned it, is gone; `reason` says why."""

    code = "NOT_FOUND"


class ResourceExhausted(Error, MemoryError):
    """The device's memory, the session's quota or a limit of the server; `violations` names it."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(Error, ConnectionError):
    """No server answers, or it is stopping, or its queue stays full."""

    code = "UNAVAILABLE"


class DeadlineExceeded(Error, TimeoutError):
    code = "DEADLINE_EXCEEDED"


class Cancelled(Error):
    code = "CANCELLED"


class Internal(Error):
    """The device failed (`reason` DEVICE_FAULT), or the answer makes no sense."""

    code = "INTERNAL"


class Unimplemented(Error, NotImplementedError):
    code = "UNIMPLEMENTED"


class Unauthenticated(Error, PermissionError):
    """The server wants to know who asks: a token or a certificate is missing, or not known."""

    code = "UNAUTHENTICATED"


class PermissionDenied(Error, PermissionError):
    """The server knows who asks, and that this one may not."""

    code = "PERMISSION_DENIED"


class DataLoss(Error):
    """A chunk of a download came damaged."""

    code = "DATA_LOSS"


_CLASSES: Dict[str, Type[Error]] = {
    kind.code: kind
    for kind in (InvalidArgument, FailedPrecondition, OutOfRange, NotFound, ResourceExhausted, Unavailable,
                 DeadlineExceeded, Cancelled, Internal, Unimplemented, Unauthenticated, PermissionDenied, DataLoss)
}

_CURES = {
    "SESSION_EXPIRED": "upload again, and keep the client open: it renews the lease",
    "SESSION_NOT_FOUND": "upload again: the server no longer has the session",
    "INSTANCE_RESTARTED": "upload again: the server was restarted",
    "BUFFER_EVICTED": "upload again, or leave evictable=True out",
    "BUFFER_EXPIRED": "upload again, or give it a longer ttl",
    "BUFFER_NOT_FOUND": "upload again",
    "CREDENTIALS_MISSING": "pass token_file, or tls_cert and tls_key, to connect()",
    "TOKEN_UNKNOWN": "ask the server's operator for another token",
    "ROLE_FORBIDS": "use a token of another role",
    "CHECKSUM_MISMATCH": "upload again: the data was damaged on its way",
    "IMAGES_UNSUPPORTED": "decode the image here and pass an array",
    "DOES_NOT_FIT_ON_CHIP": "leave method out, or take 'filter-decaying' or 'filter-tiled'",
}


_CODES = ("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
          "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
          "DATA_LOSS", "UNAUTHENTICATED")


def name_of_code(number: int) -> str:
    """The name of one of gRPC's codes."""
    return _CODES[number] if 0 <= number < len(_CODES) else "UNKNOWN"


def wrong(field: str, what: str, cure: str) -> InvalidArgument:
    """An argument that is refused before anything is sent."""
    return InvalidArgument(f"{field}: {what}; {cure} is right", field=field, cure=cure,
                           violations=[(field, f"{what}; {cure} is right")])


Names = Sequence[Tuple[str, str]]
"""What methods call the fields of their requests: (field, argument), or, with a point at the end, (beginning of fields, of arguments)."""


def argument_of(field: str, names: Names) -> str:
    """What a method's caller calls a field of its request; elements and parts of a field stay behind its name. An image file is its argument."""
    field = field.replace(".encoded.data", "").replace(".encoded.", ".")
    for name, argument in names:
        rest = field[len(name):]
        if field.startswith(name) and (name.endswith(".") or rest[:1] in ("", ".", "[")):
            return argument + rest
    return field


def name_arguments(error: InvalidArgument, names: Names, before: str = "") -> None:
    """Lets an error of the server, which knows fields of a request, name arguments. `before`: what the fields' paths begin with."""
    if not error.field.startswith(before):
        return
    field = error.field
    error.field = before + argument_of(field[len(before):], names)
    error.violations = [(error.field if name == field else name, what) for name, what in error.violations]
    error.args = (str(error).replace(f"{field}: ", f"{error.field}: ", 1), *error.args[1:])


def _duration(message: memoryview) -> float:
    parts = dict(wire.fields(message))
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    return (seconds if isinstance(seconds, int) else 0) + (nanos if isinstance(nanos, int) else 0) * 1e-9


def _pairs(message: memoryview, number: int) -> Sequence[Tuple[str, str]]:
    pairs = []
    for entry in wire.messages(message, number):
        parts = dict(wire.fields(entry))
        pairs.append((wire.text_of(parts.get(1, 0)), wire.text_of(parts.get(2, 0))))
    return pairs


class _Details:
    """google.rpc.Status, as the trailer grpc-status-details-bin has it."""

    def __init__(self, trailer: bytes) -> None:
        self.reason = ""
        self.metadata: Dict[str, str] = {}
        self.violations: Sequence[Tuple[str, str]] = ()
        self.retry_delay: Optional[float] = None
        for packed in wire.messages(trailer, 3):
            parts = dict(wire.fields(packed))
            value = parts.get(2, memoryview(b""))
            if isinstance(value, memoryview):
                self._take(wire.text_of(parts.get(1, 0)).rsplit(".", 1)[-1], value)

    def _take(self, kind: str, value: memoryview) -> None:
        if kind == "ErrorInfo":
            self.reason = wire.text_of(dict(wire.fields(value)).get(1, 0))
            self.metadata = dict(_pairs(value, 3))
        elif kind in ("BadRequest", "QuotaFailure"):
            self.violations = _pairs(value, 1)
        elif kind == "RetryInfo":
            self.retry_delay = sum(_duration(delay) for delay in wire.messages(value, 1))


_WORDS = (("CLAMP_NON_FINITE or KEEP_NON_FINITE", "'clamp' or 'keep'"), ("invalid_weights is CLAMP", "invalid_weights is 'clamp'"),
          ("lists.max_neighbors", "max_neighbors"), ("unless uniform_if_all_zero", "unless uniform_if_all_zero is True"))
"""What texts of the server name by its own words, and how they are named here."""

_absences: Dict[str, Callable[[], Tuple[str, str]]] = {}  # by address


def explain_absence(address: str, explain: Optional[Callable[[], Tuple[str, str]]]) -> None:
    """Errors of calls that nobody answers at this address say what `explain` answers: why, and the cure. None: no longer."""
    if explain is None:
        _absences.pop(address, None)
    else:
        _absences[address] = explain


def _absence(address: str) -> Tuple[str, str]:
    explain = _absences.get(address)
    if explain is not None:
        return explain()
    return f"no Cumulus server answers at {address}", f"start cumulusd at {address}, or name another address"


def from_status(code: str, message: str, trailer: bytes, address: str) -> Error:
    """The exception for a call's status; `trailer` holds its details, or nothing."""
    try:
        details = _Details(trailer)
    except (ValueError, IndexError):  # details that nobody can read are no details
        details = _Details(b"")
    for servers, ours in _WORDS:
        message = message.replace(servers, ours)
    kind = _CLASSES.get(code, Error)
    field = cure = ""
    if details.violations:
        field, cure = details.violations[0]
    if not cure:
        cure = _CURES.get(details.reason, "")
    if kind is Unavailable and not details.reason:
        why, cure = _absence(address)
        message = f"{why} ({message}); {cure}"
    elif kind is DeadlineExceeded and not details.reason:
        cure = "give the call a longer timeout, or connect() one for all calls"
        message = f"{address} has not answered within the call's time ({message}); {cure}"
    elif cure and cure not in message:
        message = f"{message}; {cure}"
    error = kind(message, field=field if kind is InvalidArgument else "", cure=cure, reason=details.reason,
                 metadata=details.metadata, violations=details.violations, retry_delay=details.retry_delay)
    error.code = code
    return error


def mistake_of_tls(words: str, address: str) -> Optional[Error]:
    """The exception for what gRPC says, in words only and as UNAVAILABLE, of certificates that do not fit. None: it says nothing of them."""
    said = words.lower().replace("_", " ")  # OpenSSL's words, or BoringSSL's names
    if "certificate verify failed" in said:
        return Unauthenticated(f"the server at {address} shows a certificate that no authority in tls_ca has issued, or one that is not valid today")
    if "is not in peer certificate" in said or "hostname verification check failed" in said:
        return Unauthenticated(f"the server at {address} shows a certificate for other names; name the server as its certificate does, "
                               "or give it one with this name as subjectAltName")
    if "wrong version number" in said:
        return InvalidArgument(f"tls_ca: the server at {address} does not speak TLS; leave tls_ca out (tls_ca, CUMULUS_TLS_CA), or start "
                               "cumulusd with --tls-cert and --tls-key", field="tls_ca")
    return None
