"""A graph meets the features that it uses, and no others."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.service import ServiceObserved
from dynamo_operator.features.decision import Decision, Feature, GraphInputs
from dynamo_operator.features.exposure import EXPOSURE
from dynamo_operator.features.history import HISTORY
from dynamo_operator.features.restart import RESTART
from dynamo_operator.features.rollouts.feature import ROLLOUTS
from dynamo_operator.features.scaling.feature import ADAPTERS
from dynamo_operator.features.suspension import SUSPENSION
from dynamo_operator.graph.decide import CLAIMS, DISCOVERY, FEATURES
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Metadata, Object
from specs import a_graph, a_service

ON_GROVE: Object = {"metadata": {"annotations": {labels.WORKLOAD_PROVIDER: "grove"}}}
PVC = {"name": "cache", "create": False}
OLD = DynamoComponentDeployment(Metadata("chat-w", labels={labels.WORKER_HASH: "01234567"}))


@pytest.mark.parametrize(
    ("service", "graph", "inputs", "feature"),
    [
        ({"scalingAdapter": {"enabled": True}}, {}, {}, ADAPTERS),
        ({"ingress": {"enabled": True}}, ON_GROVE, {}, EXPOSURE),
        ({}, {"pvcs": (PVC,)}, {}, CLAIMS),
        ({}, {"restart": {"id": "1"}}, {}, RESTART),
        ({}, {}, {"services": {"w": ServiceObserved(restart="1")}}, RESTART),
        ({}, {"metadata": {"annotations": {labels.SUSPEND: "true"}}}, {}, SUSPENSION),
        ({}, {"metadata": {"annotations": {labels.WORKER_ROLLOUT: "managed"}}}, {}, ROLLOUTS),
        ({}, {}, {"components": (OLD,)}, ROLLOUTS),
    ],
)
def test_a_feature_applies_to_a_graph_that_uses_it(
    service: dict[str, Any], graph: dict[str, Any], inputs: dict[str, Any], feature: Feature
) -> None:
    given = a_graph({"w": a_service(**service)}, **graph)
    decision = Decision(given, GraphInputs(Facts(), **inputs), RenderSettings(), datetime.now(UTC))
    met = [each for each in FEATURES if each.applies(decision)]
    assert {HISTORY, DISCOVERY, feature} == {*met}
