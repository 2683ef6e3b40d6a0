"""What a scrape shows of the runtime."""

from contextlib import suppress
from math import inf

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kube_runtime.client.client import Client
from kube_runtime.controller.controller import WorkQueue
from kube_runtime.errors import ApiError, OperatorError, Unreachable, error_type
from kube_runtime.metrics import InstrumentedTransport, RuntimeMetrics, error_label
from kube_runtime.times import Backoff
from kube_runtime.types.meta import Key
from simulated.gadget import Gadget, gadget, key
from simulated.server import Fault, Server


def api_error(code: int, reason: str = "") -> ApiError:
    return error_type(code)(code, reason, "no")


def samples(metrics: RuntimeMetrics, name: str, *labels: str) -> list[tuple[str, ...]]:
    """The labels of each sample of that name."""
    collected = (sample for metric in metrics.registry.collect() for sample in metric.samples)
    return [tuple(each.labels[label] for label in labels) for each in collected if each.name == name]


def read(metrics: RuntimeMetrics, *names: str) -> list[float | None]:
    """The values of the metrics with these names for one kind."""
    of_kind = {"resource_type": "Gadget"}
    return [metrics.registry.get_sample_value(f"kube_runtime_{each}", of_kind) for each in names]


@pytest.mark.parametrize(
    ("label", "error"),
    [
        ("not_found", api_error(404, "NotFound")),
        ("already_exists", api_error(409, "AlreadyExists")),
        ("conflict", api_error(409, "Conflict")),
        ("validation", api_error(422, "Invalid")),
        ("bad_request", api_error(400, "BadRequest")),
        ("unauthorized", api_error(401, "Unauthorized")),
        ("forbidden", api_error(403, "Forbidden")),
        ("timeout", api_error(504, "Timeout")),
        ("server_timeout", api_error(500, "ServerTimeout")),
        ("unavailable", api_error(503, "ServiceUnavailable")),
        ("rate_limited", api_error(429, "TooManyRequests")),
        ("internal", api_error(500, "InternalError")),
        ("unavailable", api_error(503)),
        ("unavailable", Unreachable("refused")),
        ("timeout", TimeoutError()),
        ("internal", OperatorError("other")),
        ("internal", ZeroDivisionError()),
    ],
    ids=str,
)
def test_every_error_has_one_label(label: str, error: Exception) -> None:
    assert label == error_label(error)


async def test_requests_are_counted_by_what_they_do_and_to_what() -> None:
    server, metrics = Server(), RuntimeMetrics()
    client = Client(InstrumentedTransport(server, metrics), field_manager="operator")
    await client.create(Gadget, gadget("g"))
    await client.get(Gadget, key("g"))
    await client.merge_patch(Gadget, key("g"), {"status": {"ready": 1}}, subresource="status")
    await client.apply(Gadget, gadget("g", 2), force=True)
    assert 1 == len([page async for page in client.pages(Gadget)])
    watch = client.watch(Gadget, resource_version="0", timeout_seconds=1)
    await anext(watch)
    await watch.aclose()
    server.faults += [Fault(0, method="POST"), Fault(500, method="POST")]
    for _ in range(2):
        with suppress(OperatorError):
            await client.create(Gadget, gadget("other"))
    await client.delete(Gadget, key("g"), uid="uid-1")
    with suppress(OperatorError):
        await client.get(Gadget, Key("default", "g"))
    assert {
        ("create", "gadgets", "201"),
        ("get", "gadgets", "200"),
        ("patch", "gadgets/status", "200"),
        ("apply", "gadgets", "200"),
        ("list", "gadgets", "200"),
        ("watch", "gadgets", "200"),
        ("create", "gadgets", "0"),
        ("create", "gadgets", "500"),
        ("delete", "gadgets", "200"),
        ("get", "gadgets", "404"),
    } == {*samples(metrics, "kube_runtime_api_requests_total", "verb", "resource", "code")}


def test_two_runtimes_in_one_process_do_not_meet() -> None:
    RuntimeMetrics()
    RuntimeMetrics()
    registry = CollectorRegistry()
    assert registry is RuntimeMetrics(registry).registry


def test_reconciles_have_the_names_and_buckets_that_dashboards_know() -> None:
    metrics = RuntimeMetrics()
    metrics.reconciled("Gadget", "ns", "success", 0.2)
    metrics.reconcile_failed("Gadget", "ns", Unreachable("x"))
    text = generate_latest(metrics.registry).decode()
    labels = 'namespace="ns",resource_type="Gadget",result="success"'
    assert f"kube_runtime_reconcile_total{{{labels}}} 1.0" in text
    failed = 'error_type="unavailable",namespace="ns",resource_type="Gadget"'
    assert f"kube_runtime_reconcile_errors_total{{{failed}}} 1.0" in text
    bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, inf]
    name = "kube_runtime_reconcile_duration_seconds_bucket"
    assert bounds == [float(each) for (each,) in samples(metrics, name, "le")]


def test_watches_of_one_kind_are_counted_together() -> None:
    metrics = RuntimeMetrics()
    for broken, held in ((1, 10), (2, 20)):
        metrics.observe_watch(
            "Gadget",
            broken=lambda broken=broken: broken,  # type: ignore[misc]
            held=lambda held=held: held,  # type: ignore[misc]
            interruptions=lambda: 4,
        )
    assert [3, 30, 8] == read(metrics, "undecodable_objects", "cache_objects", "watch_restarts_total")


async def test_a_queue_counts_additions_and_retries() -> None:
    metrics, queue = RuntimeMetrics(), WorkQueue()
    metrics.observe_queue(
        "Gadget",
        depth=lambda: queue.depth,
        active=lambda: queue.working,
        added=lambda: queue.added,
        retried=lambda: queue.retried,
    )
    queue.add(key("a"))
    queue.add(key("b"))
    queue.failed(key("a"), Backoff(1, 2))
    queue.close()
    assert [3, 1] == read(metrics, "queue_adds_total", "queue_retries_total")
