"""Withhold Ingresses and VirtualServices that the administrator does not allow.

The rules are those of the webhooks. They are checked again here, because an object may be stored while the
webhooks are off, or before the administrator restricts exposure. A withheld object is neither written nor
deleted: an upgrade of the operator interrupts no traffic and exposes nothing new.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dynamo_graphs.api import names
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.optional_apis import VirtualService
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.exposure import exposure_problems
from kube_runtime.apply.result import Applied, Blocked, Obstacle, merge
from kube_runtime.kind import Key, Object, key_of
from kube_runtime.types.networking import Ingress

_OUTSIDE = (Ingress.KIND.name, VirtualService.KIND.name)


@dataclass(frozen=True, slots=True)
class Exposure:
    """The objects to apply, the keys to leave alone, and the reasons for the status."""

    desired: Sequence[Object]
    spared: frozenset[tuple[str, Key]] = frozenset()
    blocked: tuple[Blocked, ...] = ()

    def reported(self, applied: Applied) -> Applied:
        """Add the withheld objects to the result of the apply."""
        return merge((applied, Applied(blocked=self.blocked)))


def component_exposure(
    component: DynamoComponentDeployment, desired: Sequence[Object], settings: RenderSettings
) -> Exposure:
    """Split the objects of a component into those to apply and those that are not allowed."""
    name, has_istio = component.metadata.name, _has_istio(desired, component.metadata.name)
    problems = tuple(exposure_problems(component.spec, "spec", settings, has_istio=has_istio))
    return _without(desired, {name: problems}, component.metadata.namespace)


def graph_exposure(
    graph: DynamoGraphDeployment, desired: Sequence[Object], settings: RenderSettings
) -> Exposure:
    """Split the objects of a graph into those to apply and those that are not allowed."""
    problems: dict[str, tuple[Problem, ...]] = {}
    for key, service in graph.spec.services.items():
        name, path = names.component_name(graph.metadata.name, key), f"spec.services.{key}"
        has_istio = _has_istio(desired, name)
        problems[name] = tuple(exposure_problems(service, path, settings, has_istio=has_istio))
    return _without(desired, problems, graph.metadata.namespace)


def _has_istio(desired: Iterable[Object], component: str) -> bool:
    virtual_service = (VirtualService.KIND.name, names.workload_name(component))
    return any((body["kind"], body["metadata"]["name"]) == virtual_service for body in desired)


def _without(
    desired: Sequence[Object], problems: dict[str, tuple[Problem, ...]], namespace: str
) -> Exposure:
    refused = {names.workload_name(name): denials for name, denials in problems.items() if denials}
    if not refused:
        return Exposure(desired)
    kept: list[Object] = []
    blocked: list[Blocked] = []
    for body in desired:
        kind, name = body["kind"], key_of(body).name
        if kind not in _OUTSIDE or name not in refused:
            kept.append(body)
            continue
        text = "; ".join(map(str, refused[name]))
        blocked.append(
            Blocked(Obstacle.NOT_ALLOWED, kind, name, f"{kind} {name} is not created: {text}")
        )
    # Both kinds are spared: an edit that switches the kind must not end traffic while it is not allowed.
    spared = frozenset((kind, Key(namespace, name)) for kind in _OUTSIDE for name in refused)
    return Exposure(tuple(kept), spared, tuple(blocked))
