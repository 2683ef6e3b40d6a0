"""Names and labels of the older generation. Running objects have them, so they must not change."""

import re
from typing import Any

import msgspec

from dynamo_operator.requests.api import JobPod
from dynamo_operator.shared.problems import is_subdomain
from kube_runtime.types.kinds import ConfigMap, Job, ServiceAccount
from kube_runtime.types.meta import Kind, Object, Resource

GRAPH_CONFIG = "nvidia.com/graph-config"
"""Label, with any value, of a ConfigMap with the configuration of a graph. Annotation of a DynamoDeployment:
the name of the ConfigMap to use."""
GRAPH_CONFIG_KEY = "bento.yaml"
"""The key of that ConfigMap, and the name of the file in an archive."""
DYNAMO_TAG = "nvidia.com/dynamo-tag"
"""Annotation of a DynamoDeployment without configuration: the `<module>:<class>` that its services start."""
SHARED_BY = "nvidia.com/shared-by-deployments"
"""Label of objects that the DynamoDeployments of a tag share."""

SELECTOR = "yatai.ai/selector"
"""Label of pods with the name of their Deployment, the only one in its selector."""
DEPLOYMENT = "yatai.ai/bento-deployment"
REPOSITORY = "yatai.ai/bento-repository"
VERSION = "yatai.ai/bento-version"
TARGET_TYPE = "yatai.ai/bento-deployment-target-type"
COMPONENT_TYPE = "yatai.ai/bento-deployment-component-type"
CREATOR = "yatai.ai/creator"
COMPONENT_POD = "yatai.ai/bento-deployment-pod"
"""`true` on the ServiceAccount of pods that name none."""

_NOT_IN_SUBDOMAIN = re.compile(r"[^a-z0-9.-]")


def tag_parts(tag: str) -> tuple[str, str]:
    """Split a tag into repository and version. Raises: ValueError if it is not `<repository>:<version>`."""
    repository, _, version = tag.partition(":")
    if {repository, version} & {"", ".", ".."} or ":" in version:  # they are parts of a path too
        raise ValueError(
            f'invalid tag "{tag}" (expected <repository>:<version>, for example frontend:jh2o6dqz)'
        )
    return repository, version


def nim_name(tag: str) -> str:
    """The name of the DynamoNim and the DynamoNimRequest of a tag: `--` in place of `:`, in lower case.

    Raises: ValueError if the tag is invalid as a name.
    """
    repository, version = tag_parts(tag)
    name = _NOT_IN_SUBDOMAIN.sub("-", f"{repository}--{version}".lower())
    if not is_subdomain(name):
        raise ValueError(f'invalid tag "{tag}": the name "{name}" is not a DNS subdomain')
    return name


def component_name(deployment: str, service: str) -> str:
    """The name of a service's DynamoNimDeployment and its objects: `<deployment>-<service in lower case>`."""
    return f"{deployment}-{service.lower()}"


def default_dynamo_namespace(deployment: str) -> str:
    """The Dynamo namespace of services whose configuration has none."""
    return f"dynamo-{deployment}"


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


class HorizontalPodAutoscaler(Resource):
    """A HorizontalPodAutoscaler; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("autoscaling", "v2", "HorizontalPodAutoscaler")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


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
