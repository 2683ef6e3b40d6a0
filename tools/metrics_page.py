"""The page docs/metrics.md, from the metrics of an operator's registry."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry

from dynamo_operator import METRICS_PREFIX
from dynamo_operator.admission.server import WebhookMetrics
from dynamo_operator.process.observability import CallMetrics, RolloutMetrics, register, register_scope
from kube_runtime.cache.store import Cache
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import R
from tools.markdown import table

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
HEAD = """\
# Metrics

<!-- Written by `make docs`. Change the texts where the metrics are declared. -->

The operator serves metrics at `/metrics` on `--metrics-bind-address` (default `:8080`), over TLS with its
own certificate if `--metrics-secure` is set. The first four have the names and labels of the reference
operator, so its dashboards work.

`resource_type` is a kind. `result` is `success`, `requeue` or `error`. `error_type` is the API server's
reason: `not_found`, `already_exists`, `conflict`, `validation`, `bad_request`, `unauthorized`,
`forbidden`, `timeout`, `server_timeout`, `unavailable`, `rate_limited`, or `internal` for anything else.
For webhooks, `result` is `allowed` or `denied`, `operation` is `CREATE`, `UPDATE` or `other`, and
`reason` is that of the first error: `required`, `invalid`, `unknown_field`, `not_supported`, `forbidden`,
`duplicate`, `decode_failed`, `too_large`, `immutable_field_changed`, `replicas_managed_by_adapter` or
`rollout_in_progress`.
`status` is the state of a graph (`initializing`, `pending`, `successful`, `failed`) or of a request
(`Pending`, `Profiling`, `Deploying`, `Ready`, `DeploymentDeleted`, `Failed`), `unknown` before it has one;
and `ready` or `not_ready` of a component, an adapter or a model. Each scrape counts the existing objects.
The reconcile series of a namespace disappear with its last object of that kind.

`dynamo_operator_rollouts_total` counts [managed rollouts](rollouts.md), not Deployments that replace their
own pods. It counts a rollout when its status is written: once as `started`, and once as `completed` or as
`superseded`, if the workers changed again, or back, before it was complete. It counts `deadline_exceeded`
each time a rollout made no progress for `spec.progressDeadlineSeconds`; the rollout continues and may
complete later. A restart of the operator counts nothing twice. A step is missing if the operator crashed
between writing a status and counting it, or lost the answer. A rollout that the next change supersedes
before its first status is not counted, and deleting a graph ends no rollout. Only the leader counts; the
sum over replicas is the total.

"""
_FIRST = (
    "dynamo_operator_resources_total",
    "dynamo_operator_reconcile_total",
    "dynamo_operator_reconcile_errors_total",
    "dynamo_operator_reconcile_duration_seconds",
)


class _EmptyCache(Cache):
    """A cache without objects."""

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:  # noqa: ARG002  the cache's
        """No objects."""
        return iter(())


def page() -> str:
    """The page."""
    registry = RuntimeMetrics(prefix=METRICS_PREFIX).registry
    register(registry, _EmptyCache())
    register_scope(registry, lambda: 0, lambda: False)
    WebhookMetrics(registry)
    CallMetrics(registry)
    RolloutMetrics(registry)
    rows = sorted(_rows(registry), key=lambda row: (row[0].strip("`") not in _FIRST, row[0]))
    return HEAD + "\n".join(table(("name", "type", "labels", "description"), rows)) + "\n"


def _rows(registry: CollectorRegistry) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, labels and text of each metric."""
    # Only this private attribute has the labels of metrics without samples.
    for collector in list(registry._collector_to_names):  # noqa: SLF001
        for family in collector.collect():
            names = getattr(collector, "_labelnames", getattr(family, "_labelnames", ()))
            labels = ", ".join(f"`{name}`" for name in names)
            if not labels and family.samples:
                sampled = {name for sample in family.samples for name in sample.labels}
                labels = ", ".join(f"`{name}`" for name in sorted(sampled - {"le"}))
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            yield f"`{family.name}{suffix}`", family.type, labels, family.documentation
