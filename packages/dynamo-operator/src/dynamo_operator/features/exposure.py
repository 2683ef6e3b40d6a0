"""The Ingresses and VirtualServices that a graph on Grove has itself, within the administrator's limits."""

from collections.abc import Sequence
from dataclasses import replace

from dynamo_operator import names
from dynamo_operator.component.exposure import Exposure, allowed, exposure_problems, has_istio
from dynamo_operator.features.decision import Decision, Feature
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Object


def graph_exposure(
    graph: DynamoGraphDeployment, desired: Sequence[Object], settings: RenderSettings
) -> Exposure:
    """Split the objects of a graph into those to apply and those that are not allowed.

    Only a graph on Grove has such objects itself; else its components have them, and split theirs.
    """
    problems: dict[str, tuple[Problem, ...]] = {}
    for key, service in graph.spec.services.items():
        name, path = names.component_name(graph.metadata.name, key), f"spec.services.{key}"
        problems[name] = tuple(exposure_problems(service, path, settings, has_istio=has_istio(desired, name)))
    return allowed(desired, problems, graph.metadata.namespace)


def _without_denied(decision: Decision) -> Decision:
    exposure = graph_exposure(decision.effective, decision.objects, decision.settings)
    return replace(
        decision,
        objects=tuple(exposure.desired),
        spared=decision.spared | exposure.spared,
        blocked=(*decision.blocked, *exposure.blocked),
    )


EXPOSURE = Feature(
    lambda it: (
        names.is_on_grove(it.graph)
        and any(one.ingress is not None and one.ingress.enabled for one in it.graph.spec.services.values())
    ),
    adjust=_without_denied,
)
