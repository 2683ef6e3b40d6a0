"""Decide what one reconcile of a component writes, from what was read: validate, render, what stays.

The controller, `dynamoctl render` and the preview of an upgrade call the same functions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.exposure import component_exposure
from dynamo_operator.component.namespace_defaults import component_unit, facts_of_running_pods
from dynamo_operator.component.plan import ComponentInputs, Rendered
from dynamo_operator.component.render import component_parts, model_services
from dynamo_operator.component.status import (
    NO_ORCHESTRATOR,
    Readiness,
    availability,
    refused_status,
    valid_condition,
)
from dynamo_operator.component.validate import lacks_orchestrator
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import LEADER_WORKER_SET, Facts, withheld_text
from dynamo_operator.shared.conditions import ComponentReason, Stop, in_v1beta1, stop_of_problems
from dynamo_operator.shared.problems import Problem
from dynamo_operator.takeover.plan import as_running, component_origin
from kube_runtime.apply.result import Blocked
from kube_runtime.types.meta import Key, Object


class ComponentDecision(msgspec.Struct, frozen=True):
    """What to write for a component now; nothing with a `stop`.

    `models` are the Services of models that it shares. `around` are the other objects that it controls,
    before its workloads: `rendered`, and `workloads` as they are applied, where running pods keep equivalent
    templates. What the administrator does not allow is `blocked`, and its keys are `spared`.
    """

    stop: Stop | None = None
    models: tuple[Object, ...] = ()
    around: Sequence[Object] = ()
    rendered: Iterable[Object] = ()
    workloads: Iterable[Object] = ()
    spared: frozenset[tuple[str, Key]] = frozenset()
    blocked: tuple[Blocked, ...] = ()


def decide(
    component: DynamoComponentDeployment,
    inputs: ComponentInputs,
    settings: RenderSettings,
    problems_of: Callable[[DynamoComponentDeployment], tuple[Problem, ...]],
) -> ComponentDecision:
    """Decide what to write for a component. `problems_of` validates it."""
    if problems := problems_of(component):
        if inputs.in_v1beta1:
            problems = in_v1beta1(component, problems)
        return ComponentDecision(stop_of_problems(refused_status(component, problems), problems))
    if lacks_orchestrator(component.spec, inputs.facts):
        forbidden = withheld_text(inputs.facts.withheld, (LEADER_WORKER_SET,))
        reason = ComponentReason.API_FORBIDDEN if forbidden else ComponentReason.NO_ORCHESTRATOR
        text = forbidden or NO_ORCHESTRATOR
        unavailable = availability(component, Readiness(reason, text))
        status = component.status.with_conditions([valid_condition(component), *unavailable])
        return ComponentDecision(Stop(status, "WorkloadProviderUnavailable", [text]))
    return decide_valid(component, inputs, settings)


def decide_valid(
    component: DynamoComponentDeployment, inputs: ComponentInputs, settings: RenderSettings
) -> ComponentDecision:
    """Decide what to write for a valid component that can run."""
    live, origin = inputs.live, component_origin(component)

    def render(facts: Facts, drains: RenderSettings = settings) -> Iterable[Object]:
        return component_parts(component, facts, drains)[1]

    # Rendered again only where what the pods run with may be all that differs.
    def kept(workloads: Iterable[Object], facts: Facts) -> Iterator[Object]:
        undrained = msgspec.structs.replace(settings, worker_drain_period_seconds=0)
        return as_running(workloads, partial(render, facts, undrained), live, origin)

    units = component_unit(component, inputs.facts, settings, inputs.pods)
    facts = facts_of_running_pods(inputs.facts, units, live, lambda assumed: kept(render(assumed), assumed))
    around, rendered = component_parts(component, facts, settings)
    exposure = component_exposure(component, around, settings)
    return ComponentDecision(
        models=model_services(component.metadata.namespace, component.spec),
        around=exposure.desired,
        rendered=rendered,
        workloads=Rendered(partial(kept, rendered, facts)),
        spared=exposure.spared,
        blocked=exposure.blocked,
    )
