"""Objects of core kinds that the older generation watches by labels of its own."""

from kube_runtime.types.core import ConfigMap, ServiceAccount


class GraphConfigMap(ConfigMap):
    """The configuration of a graph: a ConfigMap with the label `nvidia.com/graph-config`."""


class ServicePodAccount(ServiceAccount):
    """A ServiceAccount that an administrator has marked for the pods of services."""
