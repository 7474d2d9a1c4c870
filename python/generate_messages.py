#!/usr/bin/env python3
"""Writes src/cumulus/v1, the modules of the messages in ../proto, unless they are newer than those.

By protoc, or by grpcio-tools where that is not installed. What an older protoc writes runs with newer protobuf packages,
and not the other way round: wheels are made with the oldest that there is.
"""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "src" / "cumulus" / "v1"


def compiler():
    """The words that begin a command of protoc."""
    if shutil.which("protoc"):
        return ["protoc"]
    try:
        import grpc_tools.protoc  # noqa: F401
    except ImportError:
        sys.exit("generate_messages: there is neither protoc (Debian's package is protobuf-compiler) nor grpcio-tools")
    return [sys.executable, "-m", "grpc_tools.protoc"]


def generate():
    protos = sorted((HERE.parent / "proto" / "cumulus" / "v1").glob("*.proto"))
    if not protos and OUT.is_dir():
        return  # an unpacked source archive, which has them already
    newest = max(path.stat().st_mtime for path in protos + [pathlib.Path(__file__)])
    stamp = OUT / "__init__.py"
    if stamp.exists() and stamp.stat().st_mtime > newest:
        return
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run(compiler() + [f"-I{HERE.parent / 'proto'}", f"--python_out={OUT.parent.parent}",
                                 f"--pyi_out={OUT.parent.parent}"] + [str(path) for path in protos], check=True)
    stamp.write_text('"""Messages of the wire, package cumulus.v1. Written by generate_messages.py."""\n')


if __name__ == "__main__":
    generate()
