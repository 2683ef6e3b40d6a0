"""Decide what one reconcile of a graph writes, from what was read: validate, plan, render, every feature.

The controller, `dynamoctl render` and the preview of an upgrade call the same functions.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import msgspec

from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decision import Decision, GraphInputs
from dynamo_operator.graph.features import FEATURES
from dynamo_operator.graph.providers import (
    PROVIDERS,
    runs_on_withheld_grove,
    to_record,
    with_provider,
    workload_provider,
)
from dynamo_operator.graph.replicas import effective_replicas, sized
from dynamo_operator.graph.status import graph_stop
from dynamo_operator.labels import FINALIZER
from dynamo_operator.names import COMPONENT, GROVE, recorded
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import Problem


def decide(
    live: DynamoGraphDeployment,
    inputs: GraphInputs,
    settings: RenderSettings,
    now: datetime,
    problems_of: Callable[[DynamoGraphDeployment], tuple[Problem, ...]],
) -> Decision:
    """Decide what to write for a graph. `problems_of` validates it, with its provider recorded."""
    is_foreign = FINALIZER in live.metadata.finalizers
    kinds = {kind for kind, _ in inputs.live}
    if runs_on_withheld_grove(live, inputs.facts, kinds, has_foreign_finalizer=is_foreign):
        record = {labels.WORKLOAD_PROVIDER: GROVE}
        graph = recorded(live, GROVE)
    else:
        record = {}
        graph = with_provider(live, inputs.facts, kinds)
    if stop := graph_stop(graph, inputs.facts, problems_of(graph)):
        return Decision(graph, inputs, settings, now, record=record, stop=stop)
    return plan_graph(live, inputs, settings, now)


def plan_graph(
    live: DynamoGraphDeployment, inputs: GraphInputs, settings: RenderSettings, now: datetime
) -> Decision:
    """Decide what to write for a valid graph whose provider is available."""
    kinds = {kind for kind, _ in inputs.live}
    chosen = workload_provider(live, inputs.facts, kinds)
    record = to_record(live, chosen, inputs.facts, settings, kinds)
    annotations = {**live.metadata.annotations, labels.WORKLOAD_PROVIDER: chosen, **record}
    metadata = msgspec.structs.replace(live.metadata, annotations=annotations)
    graph = msgspec.structs.replace(live, metadata=metadata)
    features = tuple(feature for feature in FEATURES if feature.applies(graph, inputs))
    provider = PROVIDERS.get(chosen, PROVIDERS[COMPONENT])
    decision = Decision(graph, inputs, settings, now, provider, features, record)
    for feature in features:
        if feature.plan:
            decision = feature.plan(decision)
    replicas = effective_replicas(graph, decision.adapters.replicas, decision.suspension.zero)
    ids = decision.restart.ids
    services = {
        key: msgspec.structs.replace(
            service,
            replicas=replicas[key],
            annotations=service.annotations
            | ({labels.RESTART_AT: ids[key]} if ids.get(key) else {}),
        )
        for key, service in graph.spec.services.items()
    }
    spec = msgspec.structs.replace(graph.spec, services=services)
    effective = msgspec.structs.replace(graph, spec=spec)
    decision = replace(decision, effective=effective, sized=sized(effective))
    for feature in features:
        if feature.settle:
            decision = feature.settle(decision)
    decision = provider.render(decision)
    for feature in features:
        if feature.render:
            decision = feature.render(decision)
    return decision
