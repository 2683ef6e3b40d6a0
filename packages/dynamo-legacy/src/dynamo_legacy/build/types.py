"""What is watched for builds: Jobs, their pods and shared Secrets, by labels that only these have."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.batch import Job, JobPod
from kube_runtime.types.core import ConfigMap, ServiceAccount
from kube_runtime.types.meta import Resource


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
