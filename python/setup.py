"""Writes the message modules before setuptools looks for packages; everything else is in pyproject.toml."""

import pathlib
import sys

import setuptools

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import generate_messages  # noqa: E402

generate_messages.generate()
setuptools.setup()
