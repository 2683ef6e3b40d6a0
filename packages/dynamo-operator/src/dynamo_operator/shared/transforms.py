"""Informer transforms: what the cache keeps of an object.

Memory follows what is kept, and so does what can leak: a cluster has ten thousand pods of many kilobytes
each, and pull secrets contain credentials. Watches select by label, which users may put on their own
objects too.
"""

import base64
import sys
from itertools import islice

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import GROUP
from dynamo_operator.component.pods import (
    READ_CONDITIONS,
    READY,
    TEMPLATE_HASHES,
    is_over,
    is_ready,
)
from dynamo_operator.models.plan import READ_LABELS, restarts
from dynamo_operator.shared.cluster import (
    REPLICA_INDEX,
    SET_NAME,
    PullSecret,
    registry_of_credential,
)
from kube_runtime.types.kinds import ContainerStatus, Pod, PodSpec, PodStatus
from kube_runtime.types.meta import Condition, Metadata, R, Resource

_COPY = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_ENTRIES = 32
_SHORT = 256
"""Most characters of an annotation that is kept."""
_MOST_REGISTRIES = 64
"""Of one pull Secret."""


def is_controlled_by_us(resource: Resource) -> bool:
    """Whether one of our kinds controls the object."""
    controller = resource.metadata.controller
    return controller is not None and controller.api_version.partition("/")[0] == GROUP


def metadata_only(resource: R) -> R:
    """Keep little of the metadata of an object, and nothing else."""
    kept: R = type(resource)(metadata=slim(resource.metadata))
    return kept


def slimmed(resource: R) -> R:
    """Keep an object with little of its metadata."""
    return replace(resource, metadata=slim(resource.metadata))


def slim(metadata: Metadata) -> Metadata:
    """The first entries of each part of the metadata: controllers, our labels and short annotations first."""
    owners = sorted(metadata.owner_references, key=lambda owner: not owner.controller)
    named = sorted(metadata.labels.items(), key=lambda label: GROUP not in label[0])
    noted = [it for it in metadata.annotations.items() if len(it[1]) <= _SHORT and it[0] != _COPY]
    return replace(
        metadata,
        labels=dict(named[:_MOST_ENTRIES]),
        annotations=dict(noted[:_MOST_ENTRIES]),
        owner_references=tuple(owners[:_MOST_ENTRIES]),
        finalizers=(),
    )


class _Login(msgspec.Struct):
    """The fields of an entry that the kubelet reads, with their types."""

    auth: str | None = None
    username: str | None = None
    password: str | None = None
    email: str | None = None


class _DockerConfig(msgspec.Struct):
    auths: dict[str, _Login | None] = {}


def registries_only(secret: PullSecret) -> PullSecret:
    """Replace the data of a pull secret by the hosts of its registries; a malformed one has none.

    The kubelet fails every pull of a pod if one of its secrets does not parse, so an entry that is not an
    object makes the whole secret malformed.

    The annotations are dropped too: `kubectl apply` leaves a copy of the whole secret in one of them.
    """
    try:
        text = base64.b64decode(secret.data.get(".dockerconfigjson", ""), validate=True)
        auths = msgspec.json.decode(text or b"{}", type=_DockerConfig).auths
        for login in auths.values():
            _ensure_readable(login)
    except (ValueError, msgspec.DecodeError, RecursionError):
        auths = {}  # the kubelet cannot use it either, and reports it on the pod
    hosts = {registry_of_credential(server): "" for server in islice(auths, _MOST_REGISTRIES)}
    metadata = replace(slim(secret.metadata), annotations={})
    return replace(secret, metadata=metadata, data=hosts)


def _ensure_readable(login: _Login | None) -> None:
    """Raise ValueError if the kubelet could not read the field `auth`: `user:password` in base64."""
    auth = "".join(((login and login.auth) or "").split())
    padded = auth + "=" * (-len(auth) % 4)
    if auth and b":" not in base64.b64decode(padded, validate=True):
        raise ValueError("auth has no colon")


_READ_LABELS = (
    *(labels.COMPONENT, labels.GRAPH, labels.SELECTOR, SET_NAME, REPLICA_INDEX),
    *TEMPLATE_HASHES,
)


def reduced_pod(pod: Pod) -> Pod:
    """Keep the fields of a pod that the operator reads; strings that many pods share are interned."""
    old = pod.metadata
    read = (*_READ_LABELS, *(READ_LABELS if labels.BASE_MODEL_HASH in old.labels else ()))
    metadata = Metadata(
        name=old.name,
        namespace=sys.intern(old.namespace),
        uid=old.uid,
        resource_version=old.resource_version,
        deletion_timestamp=old.deletion_timestamp,
        labels={name: sys.intern(old.labels[name]) for name in read if name in old.labels},
    )
    return Pod(metadata, PodSpec(sys.intern(pod.spec.node_name)), _reduced_status(pod))


_IS_READY = PodStatus(conditions=(Condition(READY, "True"),))


def _reduced_status(pod: Pod) -> PodStatus:
    if is_over(pod):
        return PodStatus(phase=sys.intern(pod.status.phase))
    if is_ready(pod):
        return _serving_status(pod) if labels.BASE_MODEL_HASH in pod.metadata.labels else _IS_READY
    conditions = (condition for condition in pod.status.conditions if condition.type in READ_CONDITIONS)
    addresses = pod.status.pod_ips if labels.BASE_MODEL_HASH in pod.metadata.labels else ()
    return replace(pod.status, phase="", conditions=tuple(conditions), pod_ips=addresses)


def _serving_status(pod: Pod) -> PodStatus:
    """What models read of a ready pod: its addresses, and restarts of its containers."""
    counted = ContainerStatus(restart_count=restarts(pod))
    status = replace(_IS_READY, pod_ips=pod.status.pod_ips)
    return replace(status, container_statuses=(counted,)) if counted.restart_count else status
