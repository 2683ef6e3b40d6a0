"""Structs of the kinds that we watch, one file per API group, with only the fields that we read.

Watched objects are many and are shared by every reader, so they are frozen and small: a field that
no code reads is not even decoded. Objects that we write are plain JSON (`kube_runtime.kind.Object`).
"""
