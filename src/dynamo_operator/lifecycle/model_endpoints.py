"""The endpoints of a base model, from EndpointSlices and from what is remembered of each pod.

The hard part is to count each pod once. Objects of older operators put the model's label on a component's own
Services as well, so the slices of the model's own Service win wherever there are any.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dynamo_operator.api import names
from dynamo_operator.kube.types.discovery import EndpointSlice
from dynamo_operator.lifecycle.adapter_calls import Endpoint

SYSTEM_PORT = 9090
"""Port of a worker's system server. Source: specification `models` 4."""

SERVICE_NAME = "kubernetes.io/service-name"


def services(slices: Iterable[EndpointSlice]) -> tuple[str, ...]:
    """Names of the Services that the slices belong to, sorted."""
    found = {each.metadata.labels.get(SERVICE_NAME, "") for each in slices}
    return tuple(sorted(found - {""}))


def endpoints(
    base_model: str,
    slices: Iterable[EndpointSlice],
    remembered: Mapping[tuple[str, str], Endpoint],
) -> tuple[Endpoint, ...]:
    """One for each address of each pod, ordered by slice name; a pod that is not ready is one too.

    `remembered` is by pod uid and address. A pod with another uid is a new one, whatever its name.
    """
    ordered = sorted(slices, key=lambda each: each.key)
    own = names.model_service_name(base_model)
    of_model = [each for each in ordered if each.metadata.labels.get(SERVICE_NAME) == own]
    found: dict[tuple[str, str], Endpoint] = {}
    for slice_ in of_model or ordered:
        for each in slice_.endpoints or ():
            target, conditions = each.target_ref, each.conditions
            if target is None or target.kind != "Pod":
                continue
            is_callable = conditions.ready is not False and not conditions.terminating
            for host in each.addresses:
                key = target.uid, base_url(host)
                known = remembered.get(key) or Endpoint(key[1], target.uid, is_callable=is_callable)
                # A pod that was not ready may come back with a new process, which has nothing loaded.
                checked_at = known.checked_at if is_callable and known.is_callable else None
                found[key] = replace(
                    known, is_callable=is_callable, pod_name=target.name, checked_at=checked_at
                )
    return tuple(found.values())


def base_url(host: str) -> str:
    """Where the system server of a pod with that IP address is."""
    return f"http://[{host}]:{SYSTEM_PORT}" if ":" in host else f"http://{host}:{SYSTEM_PORT}"
