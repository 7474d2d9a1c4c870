"""The programs of Cumulus: cumulusd, which serves, and cumulus, its command line."""

import os
import pathlib
import sys
from typing import NoReturn


def program(name: str) -> pathlib.Path:
    """Where "cumulusd" or "cumulus" is."""
    return pathlib.Path(__file__).resolve().parent / "bin" / name


def library() -> pathlib.Path:
    """Where the client library for C is, by which the package `cumulus` moves arrays."""
    return pathlib.Path(__file__).resolve().parent / "lib" / "libcumulus.so.0"


def _become(name: str) -> NoReturn:
    path = str(program(name))
    os.execv(path, [path, *sys.argv[1:]])


def run_cumulus() -> NoReturn:
    """The entry point `cumulus`."""
    _become("cumulus")


def run_cumulusd() -> NoReturn:
    """The entry point `cumulusd`."""
    _become("cumulusd")
