"""Writes docs/metrics.md from what a running operator has in its registry."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry

from dynamo_operator.admission.metrics import WebhookMetrics
from dynamo_operator.kube.metrics import RuntimeMetrics
from dynamo_operator.kube.types.meta import R
from dynamo_operator.observability.metrics import register
from dynamo_operator.observability.models import CallMetrics
from dynamo_operator.observability.rollouts import RolloutMetrics
from dynamo_operator.observability.scope import register as register_scope

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
HEAD = """\
# Metrics

<!-- Written by `make docs`. Change the texts where the metrics are declared. -->

The operator serves them at `/metrics` on `--metrics-bind-address` (`:8080` unless set), over TLS with a
certificate of its own when `--metrics-secure` is set. The names and labels of the first four are those
of the reference operator, so its dashboards work.

`resource_type` is a kind. `result` is `success`, `requeue` or `error`. `error_type` is the API server's
reason: `not_found`, `already_exists`, `conflict`, `validation`, `bad_request`, `unauthorized`,
`forbidden`, `timeout`, `server_timeout`, `unavailable`, `rate_limited`, or `internal` for anything else.
For webhooks, `result` is `allowed` or `denied`, `operation` is `CREATE`, `UPDATE` or `other`, and
`reason` is that of the first problem: `required`, `invalid`, `unknown_field`, `not_supported`, `forbidden`,
`duplicate`, `decode_failed`, `too_large`, `immutable_field_changed`, `replicas_managed_by_adapter` or
`rollout_in_progress`.
`status` is the state of a graph (`initializing`, `pending`, `successful`, `failed`) or of a request
(`Pending`, `Profiling`, `Deploying`, `Ready`, `DeploymentDeleted`, `Failed`), `unknown` before it has one;
and `ready` or `not_ready` of a component, an adapter or a model. Objects are counted at each scrape, so what
is gone is not counted.
What was counted for reconciles in a namespace goes with its last object of that kind.

Rollouts are [managed ones](rollouts.md); Deployments that replace their own pods are not among them. Each is
counted when the status that says so was written: once as `started`, and once as `completed` or as
`superseded`, when the workers were changed again, or back, before it was complete. `deadline_exceeded` is
each time that one stood still for `spec.progressDeadlineSeconds`; it goes on, so it may be counted as
`completed` later. A restart of the operator counts nothing twice. A step is missing if the operator died
between writing a status and counting it, or lost the answer. A rollout that the next change overtakes before
any status tells of it is not counted at all, and a graph that is deleted ends none. Only the replica that
leads counts; the sum over replicas is what was done.

"""
_FIRST = (
    "dynamo_operator_resources_total",
    "dynamo_operator_reconcile_total",
    "dynamo_operator_reconcile_errors_total",
    "dynamo_operator_reconcile_duration_seconds",
)


class _Nothing:
    """A cache without objects."""

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:  # noqa: ARG002  the cache's
        """Nothing."""
        return iter(())


def page() -> str:
    """The page."""
    registry = RuntimeMetrics().registry
    register(registry, _Nothing())
    register_scope(registry, lambda: 0, lambda: False)
    WebhookMetrics(registry)
    CallMetrics(registry)
    RolloutMetrics(registry)
    rows = sorted(_rows(registry), key=lambda row: (row[0] not in _FIRST, row[0]))
    table = ["| name | type | labels | what it counts |", "|---|---|---|---|"]
    table += [f"| `{name}` | {kind} | {labels} | {text} |" for name, kind, labels, text in rows]
    return HEAD + "\n".join(table) + "\n"


def _rows(registry: CollectorRegistry) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, labels and text of each metric."""
    # prometheus-client knows the labels of a metric without samples nowhere but here.
    for collector in list(registry._collector_to_names):  # noqa: SLF001
        for family in collector.collect():
            names = getattr(collector, "_labelnames", getattr(family, "_labelnames", ()))
            labels = ", ".join(f"`{name}`" for name in names)
            if not labels and family.samples:
                found = {name for sample in family.samples for name in sample.labels}
                labels = ", ".join(f"`{name}`" for name in sorted(found - {"le"}))
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            yield f"{family.name}{suffix}", family.type, labels, family.documentation


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
