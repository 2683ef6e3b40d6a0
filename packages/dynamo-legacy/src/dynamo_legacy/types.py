"""Types of core kinds that the older generation watches by label, and the head of its objects."""

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
    """A ServiceAccount that an administrator labelled for the pods of services."""


class BuildJob(Job):
    """A Job that builds an image."""


class BuildPod(JobPod):
    """A pod of a Job that builds an image."""


class BuilderAccount(ServiceAccount):
    """A ServiceAccount that an administrator labelled for builds."""


class BuilderConfig(Resource):
    """The administrator's settings of all builds."""

    KIND = ConfigMap.KIND

    data: dict[str, str] = {}


class SharedSecret(Resource):
    """A Secret that the requests of a namespace share. Its representation hides the content."""

    KIND = Kind("", "v1", "Secret", "secrets")

    type: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")

    def __repr__(self) -> str:
        """The type and the key, without the content."""
        return f"SharedSecret({self.key})"


def object_of(type_: type[Resource], metadata: Object, **fields: Any) -> Object:
    """Build an object of that kind; `fields` are those beside its metadata."""
    header = {"apiVersion": type_.KIND.api_version, "kind": type_.KIND.name}
    return {**header, "metadata": metadata, **fields}
