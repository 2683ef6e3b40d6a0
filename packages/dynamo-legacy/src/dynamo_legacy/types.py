"""Objects of core kinds that the older generation watches, by labels that only these have."""

from typing import Any

import msgspec

from dynamo_graphs.types.profiling import JobPod
from kube_runtime.kind import Kind, Object
from kube_runtime.types.batch import Job
from kube_runtime.types.core import ConfigMap, ServiceAccount
from kube_runtime.types.meta import Resource


class GraphConfigMap(ConfigMap):
    """The configuration of a graph: a ConfigMap with the label `nvidia.com/graph-config`."""


class ServicePodAccount(ServiceAccount):
    """A ServiceAccount that an administrator has marked for the pods of services."""


class BuildJob(Job):
    """A Job that builds an image."""


class BuildPod(JobPod):
    """A pod of a Job that builds an image."""


class BuilderAccount(ServiceAccount):
    """A ServiceAccount that builds of its namespace run as."""


class BuilderConfig(Resource):
    """The administrator's settings of all builds."""

    KIND = ConfigMap.KIND

    data: dict[str, str] = {}


class SharedSecret(Resource):
    """A login that the requests of a namespace share. The object does not show it."""

    KIND = Kind("", "v1", "Secret", "secrets")

    type: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")

    def __repr__(self) -> str:
        """The kind and the name, without the login."""
        return f"SharedSecret({self.key})"


def object_of(type_: type[Resource], metadata: Object, **fields: Any) -> Object:
    """An object of that kind as it is applied; `fields` are those beside its metadata."""
    header = {"apiVersion": type_.KIND.api_version, "kind": type_.KIND.name}
    return {**header, "metadata": metadata, **fields}
