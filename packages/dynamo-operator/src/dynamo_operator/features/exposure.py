"""The Ingresses and VirtualServices that a graph on Grove has itself, within the administrator's limits."""

from msgspec.structs import replace

from dynamo_operator import names
from dynamo_operator.component.exposure import allowed
from dynamo_operator.features.decision import Decision, Feature
from dynamo_operator.shared.problems import service_path


# Only a graph on Grove has such objects itself; else its components have them, and split theirs.
def _without_denied(decision: Decision) -> Decision:
    graph = decision.effective
    specs = {
        names.component_name(graph.metadata.name, key): (service, service_path(key))
        for key, service in graph.spec.services.items()
    }
    exposure = allowed(decision.objects, specs, graph.metadata.namespace, decision.settings)
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
