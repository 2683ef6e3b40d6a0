"""Structs of built-in kinds, one file per API group, with the fields that controllers read.

Watched objects are many and shared by all readers, so they are frozen and small: other fields are not
decoded. Objects to be written are plain JSON (`kube_runtime.types.meta.Object`).
"""
