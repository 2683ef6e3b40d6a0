"""The dashboard and the alerts of the chart ask for metrics that there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from dynamo_operator import METRICS_PREFIX
from dynamo_operator.admission.server import WebhookMetrics
from dynamo_operator.process import observability as metrics
from dynamo_operator.process.observability import RolloutMetrics, register_scope
from kube_runtime.cache.store import Cache
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import R

FILES = Path(__file__).parents[4] / "charts/dynamo-platform/files"
_NAME = re.compile(r"dynamo_operator_[a-z_]+")
_ENDINGS = ("", "_total", "_bucket", "_info")


def names(registry: CollectorRegistry) -> set[str]:
    """Every name that a query may have."""
    found = [family.name for each in registry._collector_to_names for family in each.collect()]
    return {name + ending for name in found for ending in _ENDINGS}


@pytest.fixture(scope="module")
def known() -> set[str]:
    registry = RuntimeMetrics(prefix=METRICS_PREFIX).registry
    # Gauges of objects have their names even if there are none.
    metrics.register(registry, _Nothing())
    WebhookMetrics(registry)
    RolloutMetrics(registry)
    register_scope(registry, int, bool)
    return names(registry)


class _Nothing(Cache):
    """A cache without objects."""

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:  # noqa: ARG002  the cache's
        return iter(())


def queries() -> list[str]:
    board = json.loads((FILES / "operator-dashboard.json").read_text("utf-8"))
    asked = [each["expr"] for panel in board["panels"] for each in panel.get("targets", ())]
    asked += [each["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    rules = yaml.safe_load((FILES / "alerts.yaml").read_text("utf-8"))
    return asked + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("query", queries())
def test_a_query_asks_for_metrics_that_there_are(query: str, known: set[str]) -> None:
    assert set(_NAME.findall(query)) <= known


def test_no_two_panels_have_one_place_or_one_number() -> None:
    panels = json.loads((FILES / "operator-dashboard.json").read_text("utf-8"))["panels"]
    places = [(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels]
    assert len(panels) == len(set(places)) == len({each["id"] for each in panels})
