"""The endpoints of a base model, from EndpointSlices, pods, and the recorded state of each endpoint.

Each pod counts once, and only workers are called. Older operators put the model's label on the Services
of components too, so slices of the model's own Service take precedence if there are any. Addresses are
taken from a slice only if the pod's status confirms them: a user who may write EndpointSlices can put
any address into one, while only the kubelet writes the addresses of a pod.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.names import WORKER_SUFFIX
from dynamo_graphs.plan.lora_calls import Endpoint, EndpointId
from dynamo_graphs.types.grove import CLIQUE_NAME, REPLICA_INDEX
from dynamo_graphs.types.optional_apis import SET_NAME
from kube_runtime.types.core import Pod
from kube_runtime.types.discovery import EndpointSlice, SliceEndpoint

READ_LABELS = (
    labels.BASE_MODEL_HASH,
    labels.COMPONENT_TYPE,
    labels.SUB_COMPONENT_TYPE,
    labels.ROLE,
    CLIQUE_NAME,
    REPLICA_INDEX,
)
"""Labels of pods that this module reads."""


def is_follower(pod: Pod) -> bool:
    """Whether the pod is a worker of a group, whose leader alone has a LoRA API."""
    pod_labels = pod.metadata.labels
    if SET_NAME in pod_labels:
        return pod_labels.get(labels.ROLE) == "worker"
    return REPLICA_INDEX in pod_labels and pod_labels.get(CLIQUE_NAME, "").endswith(WORKER_SUFFIX)


def is_prefill(pod: Pod) -> bool:
    """Whether the pod only computes prompts for decode workers."""
    kinds = (labels.COMPONENT_TYPE, labels.SUB_COMPONENT_TYPE)
    return "prefill" in (pod.metadata.labels.get(label) for label in kinds)


def has_address(pod: Pod, host: str) -> bool:
    """Whether the pod has that IP address."""
    return any(pod_ip.ip == host for pod_ip in pod.status.pod_ips)


def restarts(pod: Pod) -> int:
    """The number of restarts of the pod's containers."""
    return sum(container.restart_count for container in pod.status.container_statuses)


SYSTEM_PORT = 9090
"""Port of a worker's system server."""

SERVICE_NAME = "kubernetes.io/service-name"

PodOf = Callable[[str], Pod | None]
"""Looks up a pod of the model's namespace by name."""


def services(slices: Iterable[EndpointSlice]) -> tuple[str, ...]:
    """Names of the Services that the slices belong to, sorted."""
    service_names = {slice_.metadata.labels.get(SERVICE_NAME, "") for slice_ in slices}
    return tuple(sorted(service_names - {""}))


def effective_slices(base_model: str, slices: Iterable[EndpointSlice]) -> tuple[EndpointSlice, ...]:
    """The slices whose endpoints count, sorted by name."""
    ordered = sorted(slices, key=lambda slice_: slice_.key)
    own = names.model_service_name(base_model)
    of_model = [slice_ for slice_ in ordered if slice_.metadata.labels.get(SERVICE_NAME) == own]
    return tuple(of_model or ordered)


def endpoints(
    base_model: str,
    slices: Iterable[EndpointSlice],
    recorded: Mapping[EndpointId, Endpoint],
    pod_of: PodOf,
) -> tuple[Endpoint, ...]:
    """Return an endpoint for each address of each pod, ready or not, sorted by the name of its slice.

    State is matched by the uid of the pod and its address; the status of an earlier operator has no uid,
    and is matched by address. Workers of a group are not endpoints.
    """
    listed = _listed(base_model, slices, recorded, pod_of)
    return tuple({endpoint.id: endpoint for endpoint in listed}.values())


def has_endpoints(base_model: str, slices: Iterable[EndpointSlice], pod_of: PodOf) -> bool:
    """Whether `endpoints` finds any in these slices."""
    return next(_listed(base_model, slices, {}, pod_of), None) is not None


def _listed(
    base_model: str,
    slices: Iterable[EndpointSlice],
    recorded: Mapping[EndpointId, Endpoint],
    pod_of: PodOf,
) -> Iterator[Endpoint]:
    hash_ = names.model_hash(base_model)
    for slice_ in effective_slices(base_model, slices):
        for slice_endpoint in slice_.endpoints or ():
            yield from _of_pod(hash_, slice_endpoint, recorded, pod_of)


def pod_names(slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """The names of the pods in these slices."""
    targets = (
        slice_endpoint.target_ref for slice_ in slices for slice_endpoint in slice_.endpoints or ()
    )
    return frozenset(
        target.name for target in targets if target is not None and target.kind == "Pod"
    )


def _of_pod(
    hash_: str,
    slice_endpoint: SliceEndpoint,
    recorded: Mapping[EndpointId, Endpoint],
    pod_of: PodOf,
) -> Iterator[Endpoint]:
    target, conditions = slice_endpoint.target_ref, slice_endpoint.conditions
    if target is None or target.kind != "Pod":
        return
    pod = pod_of(target.name)
    if pod is not None and target.uid not in ("", pod.metadata.uid):
        pod = None
    uid = pod.metadata.uid if pod is not None else target.uid
    if pod is not None and is_follower(pod):
        return
    is_served = conditions.ready is not False and not conditions.terminating
    is_worker = pod is not None and pod.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_
    for host in slice_endpoint.addresses:
        is_callable = is_served and is_worker and pod is not None and has_address(pod, host)
        address = base_url(host)
        endpoint = (
            recorded.get((uid, address))
            or recorded.get(("", address))
            or Endpoint(address, uid, is_callable=is_callable)
        )
        if (endpoint.pod_uid, endpoint.pod_name) != (uid, target.name):
            endpoint = replace(endpoint, pod_uid=uid, pod_name=target.name)
        yield with_pod(endpoint, pod, is_callable=is_callable)


def with_pod(endpoint: Endpoint, pod: Pod | None, *, is_callable: bool) -> Endpoint:
    """Update the recorded state of an endpoint from its pod. A restarted process is checked again."""
    if pod is None:
        return replace(endpoint, is_callable=False, checked_at=None)
    count = restarts(pod) if is_callable else endpoint.restarts
    is_same = is_callable and endpoint.is_callable and count == endpoint.restarts
    is_new_process = endpoint.restarts not in (None, count)
    graph, prefill = pod.metadata.labels.get(labels.GRAPH, ""), is_prefill(pod)
    if is_same and (endpoint.graph, endpoint.is_prefill) == (graph, prefill):
        return endpoint  # the common case; copies are expensive for a thousand endpoints
    return replace(
        endpoint,
        is_callable=is_callable,
        checked_at=endpoint.checked_at if is_same else None,
        is_unconfirmed=endpoint.is_unconfirmed or (is_new_process and endpoint.loaded is not None),
        graph=graph,
        is_prefill=prefill,
        restarts=count,
    )


def former(
    base_model: str, recorded: Iterable[Endpoint], present: Iterable[Endpoint], pod_of: PodOf
) -> tuple[Endpoint, ...]:
    """Former endpoints whose pods still run and may have a LoRA of the model.

    Those that serve another base model now are callable. Of the others only the slices are missing, for
    example while a Service is recreated, so nothing is unloaded.
    """
    present_ids, hash_ = {endpoint.id for endpoint in present}, names.model_hash(base_model)
    running: list[Endpoint] = []
    for endpoint in recorded:
        pod = (
            pod_of(endpoint.pod_name) if endpoint.names and endpoint.id not in present_ids else None
        )
        if pod is None or pod.metadata.uid != endpoint.pod_uid:
            continue
        if has_address(pod, host_of(endpoint.address)):
            is_others = pod.metadata.labels.get(labels.BASE_MODEL_HASH) != hash_
            running.append(with_pod(endpoint, pod, is_callable=is_others))
    return tuple(running)


def base_url(host: str) -> str:
    """The URL of the system server of a pod with that IP address."""
    return f"http://[{host}]:{SYSTEM_PORT}" if ":" in host else f"http://{host}:{SYSTEM_PORT}"


def host_of(address: str) -> str:
    """The IP address in such a URL."""
    return address.removeprefix("http://").removesuffix(f":{SYSTEM_PORT}").strip("[]")
