"""The endpoints of a base model, from EndpointSlices, from pods, and from the recorded state of each.

Each pod counts once, and only workers are called. Objects of older operators put the model's label on a
component's own Services as well, so the slices of the model's own Service take precedence wherever there
are any. A slice lists pods and whether they are ready; pods themselves report where they are: a user who may
write EndpointSlices can put any address into one, while only the kubelet reports a pod's addresses.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.names import WORKER_SUFFIX
from dynamo_graphs.plan.lora_calls import Endpoint, Place
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
"""What is read here of the pods that serve a base model."""


def is_follower(pod: Pod) -> bool:
    """Whether the pod serves together with a leader, which alone has an adapter API."""
    pod_labels = pod.metadata.labels
    if SET_NAME in pod_labels:
        return pod_labels.get(labels.ROLE) == "worker"
    return REPLICA_INDEX in pod_labels and pod_labels.get(CLIQUE_NAME, "").endswith(WORKER_SUFFIX)


def is_prefill(pod: Pod) -> bool:
    """Whether the pod only reads prompts, so that others answer for it."""
    kinds = (labels.COMPONENT_TYPE, labels.SUB_COMPONENT_TYPE)
    return "prefill" in (pod.metadata.labels.get(label) for label in kinds)


def has_address(pod: Pod, host: str) -> bool:
    """Whether that IP address is one of the pod's own."""
    return any(pod_ip.ip == host for pod_ip in pod.status.pod_ips)


def restarts(pod: Pod) -> int:
    """How often containers of the pod have been started again."""
    return sum(container.restart_count for container in pod.status.container_statuses)


SYSTEM_PORT = 9090
"""Port of a worker's system server."""

SERVICE_NAME = "kubernetes.io/service-name"

PodOf = Callable[[str], Pod | None]
"""The pod of that name in the model's namespace. None means: none is known."""


def services(slices: Iterable[EndpointSlice]) -> tuple[str, ...]:
    """Names of the Services that the slices belong to, sorted."""
    service_names = {slice_.metadata.labels.get(SERVICE_NAME, "") for slice_ in slices}
    return tuple(sorted(service_names - {""}))


def counting(base_model: str, slices: Iterable[EndpointSlice]) -> tuple[EndpointSlice, ...]:
    """The slices whose endpoints count, in the order of their names."""
    ordered = sorted(slices, key=lambda slice_: slice_.key)
    own = names.model_service_name(base_model)
    of_model = [slice_ for slice_ in ordered if slice_.metadata.labels.get(SERVICE_NAME) == own]
    return tuple(of_model or ordered)


def endpoints(
    base_model: str,
    slices: Iterable[EndpointSlice],
    remembered: Mapping[Place, Endpoint],
    pod_of: PodOf,
) -> tuple[Endpoint, ...]:
    """One for each address of each pod, ordered by slice name; a pod that is not ready is one too.

    `remembered` is by place. A pod with another uid is a new one, whatever its name; only what an earlier
    operator remembered goes by address, because it noted no uid. A pod that serves together with a leader is
    not an endpoint.
    """
    listed = _listed(base_model, slices, remembered, pod_of)
    return tuple({endpoint.place: endpoint for endpoint in listed}.values())


def has_endpoints(base_model: str, slices: Iterable[EndpointSlice], pod_of: PodOf) -> bool:
    """Whether `endpoints` finds any in these slices."""
    return next(_listed(base_model, slices, {}, pod_of), None) is not None


def _listed(
    base_model: str,
    slices: Iterable[EndpointSlice],
    remembered: Mapping[Place, Endpoint],
    pod_of: PodOf,
) -> Iterator[Endpoint]:
    hash_ = names.model_hash(base_model)
    for slice_ in counting(base_model, slices):
        for slice_endpoint in slice_.endpoints or ():
            yield from _of_pod(hash_, slice_endpoint, remembered, pod_of)


def pod_names(slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """The names of the pods in these slices."""
    targets = (
        slice_endpoint.target_ref for slice_ in slices for slice_endpoint in slice_.endpoints or ()
    )
    return frozenset(
        target.name for target in targets if target is not None and target.kind == "Pod"
    )


def _of_pod(
    hash_: str, slice_endpoint: SliceEndpoint, remembered: Mapping[Place, Endpoint], pod_of: PodOf
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
            remembered.get((uid, address))
            or remembered.get(("", address))
            or Endpoint(address, uid, is_callable=is_callable)
        )
        if (endpoint.pod_uid, endpoint.pod_name) != (uid, target.name):
            endpoint = replace(endpoint, pod_uid=uid, pod_name=target.name)
        yield with_pod(endpoint, pod, is_callable=is_callable)


def with_pod(endpoint: Endpoint, pod: Pod | None, *, is_callable: bool) -> Endpoint:
    """What is remembered of an endpoint, with what its pod says now. A new process is checked again."""
    if pod is None:
        return replace(endpoint, is_callable=False, checked_at=None)
    count = restarts(pod) if is_callable else endpoint.restarts
    is_same = is_callable and endpoint.is_callable and count == endpoint.restarts
    is_new_process = endpoint.restarts not in (None, count)
    graph, prefill = pod.metadata.labels.get(labels.GRAPH, ""), is_prefill(pod)
    if is_same and (endpoint.graph, endpoint.is_prefill) == (graph, prefill):
        return endpoint  # as nearly always, and a copy is dear where there are a thousand
    return replace(
        endpoint,
        is_callable=is_callable,
        checked_at=endpoint.checked_at if is_same else None,
        is_doubted=endpoint.is_doubted or (is_new_process and endpoint.loaded is not None),
        graph=graph,
        is_prefill=prefill,
        restarts=count,
    )


def former(
    base_model: str, remembered: Iterable[Endpoint], present: Iterable[Endpoint], pod_of: PodOf
) -> tuple[Endpoint, ...]:
    """Endpoints of the past whose pods still run and may have an adapter of the model.

    Those that serve another base model now are callable. Of the others only the slices are missing, as while
    a Service is recreated; nothing is taken from them.
    """
    places, hash_ = {endpoint.place for endpoint in present}, names.model_hash(base_model)
    running: list[Endpoint] = []
    for endpoint in remembered:
        pod = pod_of(endpoint.pod_name) if endpoint.names and endpoint.place not in places else None
        if pod is None or pod.metadata.uid != endpoint.pod_uid:
            continue
        if has_address(pod, host_of(endpoint.address)):
            is_others = pod.metadata.labels.get(labels.BASE_MODEL_HASH) != hash_
            running.append(with_pod(endpoint, pod, is_callable=is_others))
    return tuple(running)


def base_url(host: str) -> str:
    """Where the system server of a pod with that IP address is."""
    return f"http://[{host}]:{SYSTEM_PORT}" if ":" in host else f"http://{host}:{SYSTEM_PORT}"


def host_of(address: str) -> str:
    """The IP address in such a URL."""
    return address.removeprefix("http://").removesuffix(f":{SYSTEM_PORT}").strip("[]")
