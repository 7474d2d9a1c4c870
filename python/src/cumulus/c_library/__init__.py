"""Transfers by the client library for C (libcumulus, docs/c.md), where it is to be had: it moves bytes on threads of its own, without the
interpreter's lock.

It takes the place of rings and streams in Python, and says nothing where it cannot. Sessions, calls and their errors stay in Python.
"""
