"""Core kinds that are watched a second time, by another label.

A label selector has no "or", so a second group of objects of a kind requires a second watch, with a type
of its own.
"""

from kube_runtime.types.core import Service, ServiceAccount


class ModelService(Service):
    """The headless Service of a base model, which the components that serve it share."""


class PodServiceAccount(ServiceAccount):
    """A ServiceAccount that an administrator labelled for the pods of components."""
