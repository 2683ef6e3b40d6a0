"""The endpoints of a base model, from EndpointSlices, from pods, and from the recorded state of each.

Each pod counts once, and only workers are called. Objects of older operators put the model's label on a
component's own Services as well, so the slices of the model's own Service take precedence wherever there
are any. A slice lists pods and whether they are ready; pods themselves report where they are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.plan.lora_calls import Endpoint, Place
from dynamo_graphs.plan.model_pods import has_address, is_follower, is_prefill, restarts
from kube_runtime.types.core import Pod
from kube_runtime.types.discovery import EndpointSlice, SliceEndpoint

SYSTEM_PORT = 9090
"""Port of a worker's system server."""

SERVICE_NAME = "kubernetes.io/service-name"

PodOf = Callable[[str], Pod | None]
"""The pod of that name in the model's namespace. None means: none is known."""


def services(slices: Iterable[EndpointSlice]) -> tuple[str, ...]:
    """Names of the Services that the slices belong to, sorted."""
    found = {each.metadata.labels.get(SERVICE_NAME, "") for each in slices}
    return tuple(sorted(found - {""}))


def counting(base_model: str, slices: Iterable[EndpointSlice]) -> tuple[EndpointSlice, ...]:
    """The slices whose endpoints count, in the order of their names."""
    ordered = sorted(slices, key=lambda each: each.key)
    own = names.model_service_name(base_model)
    of_model = [each for each in ordered if each.metadata.labels.get(SERVICE_NAME) == own]
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
    found: dict[Place, Endpoint] = {}
    hash_ = names.model_hash(base_model)
    for slice_ in counting(base_model, slices):
        for each in slice_.endpoints or ():
            for one in _of_pod(hash_, each, remembered, pod_of):
                found[one.place] = one
    return tuple(found.values())


def has_endpoints(base_model: str, slices: Iterable[EndpointSlice], pod_of: PodOf) -> bool:
    """Whether `endpoints` finds any in these slices."""
    hash_ = names.model_hash(base_model)
    found = (each for slice_ in counting(base_model, slices) for each in slice_.endpoints or ())
    return any(True for each in found for _ in _of_pod(hash_, each, {}, pod_of))


def pod_names(slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """The names of the pods in these slices."""
    targets = (each.target_ref for slice_ in slices for each in slice_.endpoints or ())
    return frozenset(each.name for each in targets if each is not None and each.kind == "Pod")


def _of_pod(
    hash_: str, each: SliceEndpoint, remembered: Mapping[Place, Endpoint], pod_of: PodOf
) -> Iterator[Endpoint]:
    target, conditions = each.target_ref, each.conditions
    if target is None or target.kind != "Pod":
        return
    pod = pod_of(target.name)
    if pod is not None and target.uid not in ("", pod.metadata.uid):
        pod = None
    uid = pod.metadata.uid if pod is not None else target.uid
    if pod is not None and is_follower(pod):
        return
    is_served = conditions.ready is not False and not conditions.terminating
    for host in each.addresses:
        is_callable = is_served and pod is not None and _is_worker(pod, hash_, host)
        address = base_url(host)
        known = (
            remembered.get((uid, address))
            or remembered.get(("", address))
            or Endpoint(address, uid, is_callable=is_callable)
        )
        if (known.pod_uid, known.pod_name) != (uid, target.name):
            known = replace(known, pod_uid=uid, pod_name=target.name)
        yield with_pod(known, pod, is_callable=is_callable)


def with_pod(known: Endpoint, pod: Pod | None, *, is_callable: bool) -> Endpoint:
    """What is remembered of an endpoint, with what its pod says now. A new process is checked again."""
    if pod is None:
        return replace(known, is_callable=False, checked_at=None)
    count = restarts(pod) if is_callable else known.restarts
    is_same = is_callable and known.is_callable and count == known.restarts
    is_new_process = known.restarts not in (None, count)
    graph, prefill = pod.metadata.labels.get(labels.GRAPH, ""), is_prefill(pod)
    if is_same and (known.graph, known.is_prefill) == (graph, prefill):
        return known  # as nearly always, and a copy is dear where there are a thousand
    return replace(
        known,
        is_callable=is_callable,
        checked_at=known.checked_at if is_same else None,
        is_doubted=known.is_doubted or (is_new_process and known.loaded is not None),
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
    places, hash_ = {each.place for each in present}, names.model_hash(base_model)
    found: list[Endpoint] = []
    for each in remembered:
        pod = pod_of(each.pod_name) if each.names and each.place not in places else None
        if pod is None or pod.metadata.uid != each.pod_uid:
            continue
        if has_address(pod, host_of(each.address)):
            is_others = pod.metadata.labels.get(labels.BASE_MODEL_HASH) != hash_
            found.append(with_pod(each, pod, is_callable=is_others))
    return tuple(found)


def _is_worker(pod: Pod, hash_: str, host: str) -> bool:
    """Whether a request to that address reaches a pod that serves the base model, and nothing else."""
    return pod.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_ and has_address(pod, host)


def base_url(host: str) -> str:
    """Where the system server of a pod with that IP address is."""
    return f"http://[{host}]:{SYSTEM_PORT}" if ":" in host else f"http://{host}:{SYSTEM_PORT}"


def host_of(address: str) -> str:
    """The IP address in such a URL."""
    return address.removeprefix("http://").removesuffix(f":{SYSTEM_PORT}").strip("[]")
