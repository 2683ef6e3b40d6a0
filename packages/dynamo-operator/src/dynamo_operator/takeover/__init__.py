"""Workloads of an earlier operator, taken over without a restart of their pods.

`plan.py` decides which templates stay. The steps around it: the graph's controller removes the finalizer and
records the provider (`graph/controller.py`), `TAKEOVER` keeps the components' specs (`graph/decide.py`), and
the applier becomes the manager of the fields (`ManagedFieldsUpgrade` in `kube_runtime/apply/writer.py`).
"""
