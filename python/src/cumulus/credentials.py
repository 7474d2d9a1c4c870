"""How a client knows its server, and how the server knows the client."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Dict, Optional, Tuple

import grpc

from .errors import InvalidArgument

_FIELDS = ("server", "tls_ca", "tls_cert", "tls_key", "token_file")


@dataclasses.dataclass(frozen=True)
class Credentials:
    """Names of files.

    Attributes:
        tls_ca: authorities of the server's certificate, PEM; without, the connection is not encrypted.
        tls_cert: the client's own certificate, PEM, for servers that ask for one.
        tls_key: its key, PEM.
        token_file: the token of the client, for servers that ask for one. It travels only over TLS or to this machine.
    """

    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    token_file: str = ""


def _settings_file() -> Optional[pathlib.Path]:
    named = os.environ.get("CUMULUS_CONFIG", "")
    if named:
        return pathlib.Path(named)
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    home = os.environ.get("HOME", "")
    if not folder and not home:
        return None
    path = (pathlib.Path(folder) if folder else pathlib.Path(home, ".config")) / "cumulus" / "client.conf"
    return path if path.exists() else None


def _read_file(path: pathlib.Path) -> Dict[str, str]:
    settings: Dict[str, str] = {}
    for number, whole in enumerate(_read("CUMULUS_CONFIG", str(path)).decode("utf-8", "replace").splitlines(), 1):
        line = whole.split("#", 1)[0].strip()
        if not line:
            continue
        name, _, value = (part.strip() for part in line.partition("="))
        if name not in _FIELDS or not value:
            raise InvalidArgument(f"{path}:{number}: '{line}' is no setting; write NAME = VALUE with a NAME of "
                                  f"{', '.join(_FIELDS[:-1])} and {_FIELDS[-1]}")
        settings[name] = value if name == "server" else str(path.parent / value)
    return settings


def read_settings() -> Tuple[str, Credentials]:
    """The server and the credentials that the environment names (CUMULUS_SERVER, CUMULUS_TLS_CA, CUMULUS_TLS_CERT,
    CUMULUS_TLS_KEY, CUMULUS_TOKEN_FILE), and, for what it leaves open, those of the configuration file: CUMULUS_CONFIG,
    or cumulus/client.conf in XDG_CONFIG_HOME or ~/.config, with lines "name = value"."""
    path = _settings_file()
    settings = _read_file(path) if path else {}
    for name in _FIELDS:
        value = os.environ.get("CUMULUS_" + name.upper(), "")
        if value:
            settings[name] = value
    return settings.pop("server", ""), Credentials(**settings)


def _read(what: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as problem:
        raise InvalidArgument(f"{what}: cannot read '{path}': {problem.strerror}") from None


def is_this_machine(target: str) -> bool:
    host = target.rpartition(":")[0]
    # Of digits and dots: 127.example.com is a name that leads anywhere.
    loopback = host.startswith("127.") and not host.strip("0123456789.")
    return target.startswith("unix:") or host in ("localhost", "[::1]") or loopback


@dataclasses.dataclass(frozen=True)
class ChannelSecurity:
    """Of a connection to one server; `authorization` goes with every call."""

    credentials: Optional[grpc.ChannelCredentials] = None
    authorization: str = ""

    @property
    def metadata(self) -> Optional[Tuple[Tuple[str, str], ...]]:
        return (("authorization", self.authorization),) if self.authorization else None


def _check_address(target: str) -> None:
    """gRPC takes port 443 where an address has none, and of what is no port what is left of it in 16 bits. Of a page's address, http://..., it
    says after a while that it finds none."""
    scheme, mark, _ = target.partition("://")
    if mark and scheme not in ("dns", "xds"):
        raise InvalidArgument(f"server: is {target}; HOST:PORT with a port of 1 to 65535, without {scheme}://, is right", field="server")
    port = target.rpartition(":")[2] if ":" in target else ""
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise InvalidArgument(f"server: is {target}; HOST:PORT with a port of 1 to 65535, or unix:PATH, is right", field="server")


def _read_authorities(path: str) -> bytes:
    authorities = _read("tls_ca", path)
    if b"-----BEGIN CERTIFICATE-----" not in authorities:
        raise InvalidArgument(f"tls_ca: '{path}' has no certificate in PEM; name the authority's certificate, not a key", field="tls_ca")
    return authorities


def secure(target: str, files: Credentials) -> ChannelSecurity:
    """Reads the files. A Unix socket has no need of them: who may open it is known."""
    if target.startswith("unix:"):
        return ChannelSecurity()
    _check_address(target)
    if bool(files.tls_cert) != bool(files.tls_key):
        missing = "tls_key" if files.tls_cert else "tls_cert"
        raise InvalidArgument(f"{missing} is missing; a client's certificate and its key go together")
    if files.tls_cert and not files.tls_ca:
        raise InvalidArgument("tls_ca is missing; name the authority of the server's certificate beside the client's "
                              "own certificate")
    authorization = ""
    if files.token_file:
        token = _read("token_file", files.token_file).decode("ascii", "replace").strip()
        if not token or not token.isprintable() or " " in token or not token.isascii():
            raise InvalidArgument(f"token_file: '{files.token_file}' does not hold one token; put into it what "
                                  "`cumulusd token` printed")
        if not files.tls_ca and not is_this_machine(target):
            raise InvalidArgument(f"token_file: the token would travel to {target} unencrypted; give the authority of "
                                  "the server's certificate too (tls_ca, CUMULUS_TLS_CA), or no token")
        authorization = f"Bearer {token}"
    if not files.tls_ca:
        return ChannelSecurity(None, authorization)
    key = _read("tls_key", files.tls_key) if files.tls_key else None
    chain = _read("tls_cert", files.tls_cert) if files.tls_cert else None
    return ChannelSecurity(grpc.ssl_channel_credentials(_read_authorities(files.tls_ca), key, chain), authorization)
