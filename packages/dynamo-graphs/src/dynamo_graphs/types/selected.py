"""Objects of core kinds that are watched by another label than the rest of their kind.

A label selector has no "or". A kind of which two sorts concern us has two watches, each with a type.
"""

from kube_runtime.types.core import Service, ServiceAccount


class ModelService(Service):
    """The headless Service of a base model, which the components that serve it share."""


class PodServiceAccount(ServiceAccount):
    """A ServiceAccount that an administrator has marked for the pods of components."""
