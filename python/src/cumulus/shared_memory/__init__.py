"""Transfers through memory that client and server of one machine have both mapped: proto/cumulus/v1/shared_memory.proto.

They take the place of streams where they can, and say nothing where they cannot.
"""
