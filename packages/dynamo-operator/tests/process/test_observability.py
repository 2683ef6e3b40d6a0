"""Metrics are for clients that the API server authorizes, and others cost it little."""

import asyncio
import errno
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import aiohttp
import msgspec
import pytest
import structlog
from prometheus_client import CollectorRegistry, Counter, generate_latest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from dynamo_operator import version
from dynamo_operator.admission.certificates import Rotation, UnverifiedStore
from dynamo_operator.component.api import (
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoComponentDeploymentStatus,
    ServiceReplicaStatus,
)
from dynamo_operator.features.rollouts.status import RolloutResult
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
    RollingUpdateStatus,
)
from dynamo_operator.models.api import DynamoModel, DynamoModelStatus, EndpointInfo
from dynamo_operator.models.plan import Call, Ending, LoraVerb, Reply
from dynamo_operator.process.observability import (
    BURST,
    FORBIDDEN,
    OK,
    REDACTED,
    REFILL_SECONDS,
    REMEMBERED_LIMIT,
    TEXT_LIMIT,
    UNAVAILABLE,
    UNKNOWN,
    Access,
    CallMetrics,
    HttpServer,
    LinesPerObject,
    ObjectGauges,
    RolloutMetrics,
    configure,
    health_server,
    metrics_server,
    redacted,
    register,
    state_of,
    written,
)
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.settings import Address, LogFormat, LoggingSettings, TimeFormat
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.controller.manager import Health
from kube_runtime.errors import Unreachable
from kube_runtime.types.meta import Condition, Metadata, R, Resource
from scripted.transport import answer
from simulated.clock import on_simulated_clock

PROMETHEUS = "system:serviceaccount:monitoring:prometheus"


@dataclass
class Reviews:
    """An API server that knows two tokens; one of their owners may read metrics."""

    asked: list[str] = field(default_factory=list)
    subjects: list[dict[str, object]] = field(default_factory=list)
    is_away: bool = False
    may_nobody: bool = False
    go_on: asyncio.Event | None = None

    async def send(self, request: Request) -> Answer:
        assert request.body is not None
        self.asked.append(request.path.rpartition("/")[2])
        if self.go_on is not None:
            await self.go_on.wait()
        if self.is_away:
            raise Unreachable("away")
        spec = json.loads(request.body)["spec"]
        if request.path.endswith("tokenreviews"):
            status = self._whose(spec["token"])
        else:
            self.subjects.append(spec)
            is_for_metrics = spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
            may = not self.may_nobody and spec["user"] == PROMETHEUS
            status = {"allowed": is_for_metrics and may}
        return answer(201, {"metadata": {}, "spec": spec, "status": status})

    @staticmethod
    def _whose(token: str) -> dict[str, object]:
        users = {"prometheus": PROMETHEUS, "tenant": "system:serviceaccount:team-a:default"}
        if token not in users:
            return {"authenticated": False, "error": "unknown"}
        user = {"username": users[token], "uid": "7", "groups": ["g"], "extra": {"a": ["b"]}}
        return {"authenticated": True, "user": user}


def access(reviews: Reviews) -> Access:
    return Access(Client(reviews), "/metrics")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Bearer prometheus", OK),
        ("bearer  prometheus ", OK),
        ("Bearer tenant", FORBIDDEN),
        ("Bearer forged", UNKNOWN),
        ("Bearer", UNKNOWN),
        ("Bearer p\u00e9", UNKNOWN),
        ("Bearer " + "x" * 20_000, UNKNOWN),
        ("Basic cHJvbWV0aGV1cw==", UNKNOWN),
        ("", UNKNOWN),
    ],
)
async def test_only_tokens_that_may_read_metrics_are_accepted(header: str, expected: int) -> None:
    assert expected == await access(Reviews()).status(header)


async def test_a_review_has_all_attributes_of_the_user_and_is_cached() -> None:
    reviews = Reviews()
    asked = access(reviews)
    for _ in range(5):
        for token in ("prometheus", "tenant", "forged"):
            await asked.status(f"Bearer {token}")
    assert 5 == len(reviews.asked), "refusals are remembered, too"
    found = {name: reviews.subjects[0][name] for name in ("user", "uid", "groups", "extra")}
    assert {"user": PROMETHEUS, "uid": "7", "groups": ["g"], "extra": {"a": ["b"]}} == found


async def test_unknown_tokens_do_not_evict_a_scraper_from_the_limited_cache() -> None:
    reviews = Reviews()
    asked = access(reviews)
    assert OK == await asked.status("Bearer prometheus")
    for number in range(3000):
        await asked.status(f"Bearer {number}")
        await asyncio.sleep(0)
    assert 1024 == len(asked._refused)  # memory is what it is about
    del reviews.asked[:]
    assert OK == await asked.status("Bearer prometheus")
    assert [] == reviews.asked


@on_simulated_clock
async def test_a_scraper_whose_review_expired_does_not_wait_behind_unknown_tokens() -> None:
    reviews = Reviews()
    asked = access(reviews)
    assert OK == await asked.status("Bearer prometheus")
    await asyncio.sleep(90)
    reviews.go_on = asyncio.Event()
    tasks = [asyncio.create_task(asked.status(f"Bearer {number}")) for number in range(200)]
    await asyncio.sleep(1)
    scraper = asyncio.create_task(asked.status("Bearer prometheus"))
    await asyncio.sleep(1)
    assert 5 == len([each for each in reviews.asked if each == "tokenreviews"][1:])
    reviews.go_on.set()
    assert OK == await scraper
    await asyncio.gather(*tasks)


@on_simulated_clock
async def test_a_reader_that_lost_the_permission_is_refused_when_the_review_expires() -> None:
    reviews = Reviews()
    asked = access(reviews)
    found = [await asked.status("Bearer prometheus")]
    reviews.may_nobody = True
    for seconds in (59, 2):
        await asyncio.sleep(seconds)
        found.append(await asked.status("Bearer prometheus"))
    assert [OK, OK, FORBIDDEN] == found


async def test_concurrent_unknown_tokens_cause_few_token_reviews() -> None:
    reviews = Reviews(go_on=asyncio.Event())
    asked = access(reviews)
    tasks = [asyncio.create_task(asked.status(f"Bearer {number}")) for number in range(200)]
    await asyncio.sleep(0.1)
    assert 4 == len(reviews.asked)
    assert reviews.go_on is not None
    reviews.go_on.set()
    found = await asyncio.gather(*tasks)
    assert {UNKNOWN: 32, UNAVAILABLE: 168} == {each: found.count(each) for each in set(found)}


async def test_every_reader_is_refused_while_the_api_server_is_unreachable_and_that_is_not_cached() -> None:
    reviews = Reviews(is_away=True)
    asked = access(reviews)
    assert UNAVAILABLE == await asked.status("Bearer prometheus")
    reviews.is_away = False
    assert OK == await asked.status("Bearer prometheus")


@pytest.mark.parametrize(("token", "expected"), [("prometheus", 200), ("tenant", 403), ("", 401)])
async def test_metrics_over_tls_need_a_token_that_may_read_them(token: str, expected: int) -> None:
    kept = Rotation(UnverifiedStore())
    server = metrics_server(ANY, CollectorRegistry(), certificate=kept.certificate, access=access(Reviews()))
    keeping = asyncio.create_task(kept.run())
    await kept.certificate.loaded.wait()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with running(server, "https") as session, session.get("/metrics", headers=headers) as response:
        assert expected == response.status
        assert ("Bearer" if expected == 401 else None) == response.headers.get("WWW-Authenticate")
        assert expected == 200 or not await response.read()
    keeping.cancel()
    await asyncio.wait([keeping])


ANY = Address("127.0.0.1", 0)
WELL = Health(())
ILL = Health(("pods: not listed yet", "starting"))


@asynccontextmanager
async def running(server: HttpServer, scheme: str = "http") -> AsyncIterator[aiohttp.ClientSession]:
    task = asyncio.create_task(server.run())
    listening = asyncio.create_task(server.listening.wait())
    await asyncio.wait({task, listening}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        listening.cancel()
        await task
    try:
        base = f"{scheme}://127.0.0.1:{server.port}"
        connector = aiohttp.TCPConnector(ssl=False)
        async with aiohttp.ClientSession(base, connector=connector) as session:
            yield session
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    ("path", "ready", "status", "text"),
    [
        *((path, WELL, 200, "ok") for path in ("/healthz", "/readyz", "/healthz/healthz", "/readyz/readyz")),
        ("/readyz", ILL, 500, "[-]pods: not listed yet\n[-]starting\nreadyz check failed\n"),
        ("/healthz?verbose", ILL, 200, "healthz check passed\n"),
    ],
)
async def test_a_probe_says_ok_or_what_is_wrong(path: str, ready: Health, status: int, text: str) -> None:
    server = health_server(ANY, alive=lambda: WELL, ready=lambda: ready)
    async with running(server) as session, session.get(path) as response:
        assert (status, text) == (response.status, await response.text())


async def test_metrics_are_served_in_the_format_asked_for() -> None:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc()
    async with running(metrics_server(ANY, registry)) as session:
        async with session.get("/metrics") as response:
            assert "text/plain" == response.content_type
            assert "things_total 1.0\n" in await response.text()
        wanted = {"Accept": "application/openmetrics-text; version=1.0.0"}
        async with session.get("/metrics", headers=wanted) as response:
            assert "application/openmetrics-text" == response.content_type
            assert (await response.text()).endswith("# EOF\n")


def test_the_version_the_process_and_the_endpoints_of_a_model_are_there() -> None:
    ends = (
        EndpointInfo(address="a", ready=True),
        EndpointInfo(address="b", ready=False, failures=2),
        EndpointInfo(address="c", ready=False, failures=2, fallback_covered=True),
        EndpointInfo(address="d", ready=False),
    )
    status = DynamoModelStatus(endpoints=ends, conditions=(Condition("EndpointsReady", "False"),))
    model = DynamoModel(metadata=Metadata(name="m", namespace="n"), status=status)
    registry = CollectorRegistry()
    register(registry, ObjectsMetrics(model))
    for state in ("ready", "failing", "covered", "waiting"):
        labels = {"namespace": "n", "model": "m", "state": state}
        assert 1 == registry.get_sample_value("dynamo_operator_model_endpoints", labels)
    labels = {"resource_type": "DynamoModel", "namespace": "n", "status": "not_ready"}
    assert 1 == registry.get_sample_value("dynamo_operator_resources_total", labels)
    assert 1 == registry.get_sample_value("dynamo_operator_build_info", {"version": version()})
    assert (registry.get_sample_value("process_resident_memory_bytes") or 0) > 0


def test_a_call_is_counted_with_its_result_and_its_time() -> None:
    registry = CollectorRegistry()
    metrics = CallMetrics(registry)
    metrics.called(Call(LoraVerb.LOAD, "a", "s3://a"), Reply(Ending.FAILED), 3.0)
    labels = {"verb": "load", "result": "failed"}
    assert 1 == registry.get_sample_value("dynamo_operator_adapter_calls_total", labels)
    assert 3.0 == registry.get_sample_value("dynamo_operator_adapter_call_seconds_sum", {"verb": "load"})


class ObjectsMetrics(Cache):
    """A cache of some objects."""

    def __init__(self, *held: Resource) -> None:
        super().__init__()
        self.held: list[Resource] = [*held]

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:  # noqa: ARG002  the cache's
        return (each for each in self.held if isinstance(each, type_))


def a_graph(name: str, state: str | None, namespace: str = "team") -> DynamoGraphDeployment:
    return DynamoGraphDeployment(
        metadata=Metadata(name=name, namespace=namespace), status=DynamoGraphDeploymentStatus(state=state)
    )


def a_component(*conditions: Condition) -> DynamoComponentDeployment:
    return DynamoComponentDeployment(
        metadata=Metadata(name="c", namespace="team"),
        status=DynamoComponentDeploymentStatus(conditions=conditions),
    )


def count(registry: CollectorRegistry, kind: str, status: str, namespace: str = "team") -> float:
    labels = {"resource_type": kind, "namespace": namespace, "status": status}
    return registry.get_sample_value("dynamo_operator_resources_total", labels) or 0


def test_objects_are_counted_by_kind_namespace_and_state() -> None:
    registry, cache = CollectorRegistry(), ObjectsMetrics()
    register(registry, cache)
    cache.held = [
        a_graph("a", "pending"),
        a_graph("b", "pending"),
        a_graph("c", "pending", namespace="other"),
        a_component(),
    ]
    assert 2 == count(registry, "DynamoGraphDeployment", "pending")
    assert 1 == count(registry, "DynamoGraphDeployment", "pending", "other")
    assert 1 == count(registry, "DynamoComponentDeployment", "not_ready")
    cache.held = [a_graph("a", "successful")]
    assert 0 == count(registry, "DynamoGraphDeployment", "pending"), "what is gone is not counted"
    assert 1 == count(registry, "DynamoGraphDeployment", "successful")


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (a_graph("a", "failed"), "failed"),
        (a_graph("a", ""), "unknown"),
        (a_graph("a", None), "unknown"),
        (a_component(Condition("Available", "True")), "ready"),
        (a_component(Condition("Available", "False")), "not_ready"),
        (a_component(Condition("Available", "Unknown")), "not_ready"),
    ],
)
def test_an_object_has_a_state(resource: Resource, expected: str) -> None:
    assert expected == state_of(resource)


def graph(*rollout: str) -> DynamoGraphDeployment:
    update = RollingUpdateStatus(rollout[0], to_hash=rollout[1]) if rollout else None
    return DynamoGraphDeployment(status=DynamoGraphDeploymentStatus(rolling_update=update))


def counts(registry: CollectorRegistry) -> dict[str, float | None]:
    name = "dynamo_operator_rollouts_total"
    return {each.value: registry.get_sample_value(name, {"result": each}) for each in RolloutResult}


def test_the_results_of_written_statuses_add_up() -> None:
    registry = CollectorRegistry()
    metrics = RolloutMetrics(registry)
    nothing = {"started": 0, "completed": 0, "superseded": 0, "deadline_exceeded": 0}
    assert nothing == counts(registry)
    steps = [graph(), graph("InProgress", "a"), graph("Pending", "b"), graph("Completed", "b")]
    for before, after in pairwise(steps):
        metrics.written(before, after)
        metrics.written(after, after)
    assert nothing | {"started": 2, "completed": 1, "superseded": 1} == counts(registry)
    under_way, registry = graph("InProgress", "a"), CollectorRegistry()
    RolloutMetrics(registry).written(under_way, graph("Completed", "a"))
    assert nothing | {"completed": 1} == counts(registry), "a process that starts in the middle"


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def lines(*objects: Resource) -> list[str]:
    registry = CollectorRegistry()
    registry.register(ObjectGauges(ObjectsMetrics(*objects), now=lambda: NOW))
    text = generate_latest(registry).decode()
    others = ("#", "dynamo_operator_resources_total{", "dynamo_operator_model_endpoints{")
    return [line for line in text.splitlines() if not line.startswith(others)]


def a_graph_of_metrics(ready: str, reason: str = "", **annotations: str) -> DynamoGraphDeployment:
    moment, worker = "2026-01-02T03:03:05Z", ComponentSpec(component_type="worker", replicas=2)
    return DynamoGraphDeployment(
        Metadata("chat", "lab", annotations=annotations),
        spec=DynamoGraphDeploymentSpec(services={"decode": worker}, replicas=2),
        status=DynamoGraphDeploymentStatus(
            conditions=(Condition("Ready", ready, reason, last_transition_time=moment),),
            services={"decode": ServiceReplicaStatus("Deployment", "chat-decode", 4, 4, 3)},
            gpus=8,
        ),
    )


def test_a_time_that_a_user_wrote_into_a_status_ends_no_scrape() -> None:
    hostile = msgspec.structs.replace(
        a_graph_of_metrics("True"),
        metadata=Metadata("evil", "lab"),
        status=DynamoGraphDeploymentStatus(
            conditions=(Condition("Ready", "True", last_transition_time="2026-01-01T00:00:00+99:99"),)
        ),
    )
    found = lines(hostile, a_graph_of_metrics("True"))
    assert 'dynamo_operator_graph_ready{graph="chat",namespace="lab"} 1.0' in found
    seconds = [line for line in found if "state_seconds" in line]
    assert ['dynamo_operator_graph_state_seconds{graph="chat",namespace="lab",ready="true"} 60.0'] == seconds


def test_a_graph_that_waits_has_a_time_unless_it_is_suspended_or_has_no_status() -> None:
    ready, waits, *others = [
        'dynamo_operator_graph_ready{graph="chat",namespace="lab"} 0.0',
        'dynamo_operator_graph_state_seconds{graph="chat",namespace="lab",ready="false"} 60.0',
        'dynamo_operator_graph_gpus_desired{graph="chat",namespace="lab"} 8.0',
        'dynamo_operator_graph_replicas_desired{graph="chat",namespace="lab",service="decode"} 4.0',
        'dynamo_operator_graph_replicas_ready{graph="chat",namespace="lab",service="decode"} 3.0',
    ]
    assert [ready, waits, *others] == lines(a_graph_of_metrics("False"))
    assert [ready, *others] == lines(a_graph_of_metrics("False", "suspended"))
    assert [ready] == lines(DynamoGraphDeployment(Metadata("chat", "lab")))


@pytest.mark.parametrize(
    "type_",
    [
        *(DynamoComponentDeployment, DynamoGraphDeployment, DynamoGraphDeploymentRequest),
        *(DynamoGraphDeploymentScalingAdapter, DynamoModel),
    ],
)
def test_paused_objects_are_counted_by_kind(type_: type[Resource]) -> None:
    def told(value: str) -> list[str]:
        paused = type_(Metadata("chat", "lab", annotations={"nvidia.com/paused": value}))
        return [line for line in lines(paused) if "paused_objects" in line]

    labels = f'namespace="lab",resource_type="{type_.KIND.name}"'
    assert [f"dynamo_operator_paused_objects{{{labels}}} 1.0"] == told("true")
    assert [] == told("yes")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def _log_a_bug() -> None:
    local = "kept for " + "oneself"
    try:
        dict[int, str]()[len(local)]
    except KeyError:
        structlog.get_logger("ours").exception("reconcile failed")


def test_entries_of_structlog_and_of_libraries_look_the_same_and_have_a_level() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format="json"), stream)
    structlog.get_logger("ours").info("hello", size=1)
    logging.getLogger("theirs").warning("hello %s", "you")
    ours, theirs = entries(stream)
    assert ["timestamp", "level", "logger", "message", "size"] == list(ours)
    assert ("info", "ours", "hello") == (ours["level"], ours["logger"], ours["message"])
    assert ("warning", "theirs", "hello you") == (theirs["level"], theirs["logger"], theirs["message"])
    configure(LoggingSettings(format="json", level="warning"), stream)
    structlog.get_logger("ours").info("no")
    logging.getLogger("theirs").info("no")
    structlog.get_logger("ours").warning("yes")
    assert ["yes"] == [entry["message"] for entry in entries(stream)[2:]]


def test_without_a_terminal_auto_means_json_and_the_console_has_no_colour() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(), stream)
    structlog.get_logger("ours").info("hello")
    assert "hello" == entries(stream)[0]["message"]
    configure(LoggingSettings(format="console"), stream)
    structlog.get_logger("ours").info("again", size=1)
    assert "again" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_bug_is_logged_with_its_traceback_without_local_variables(form: LogFormat) -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format=form), stream)
    _log_a_bug()
    assert "KeyError" in stream.getvalue()
    assert "kept for oneself" not in stream.getvalue()
    if form == "json":
        (entry,) = entries(stream)
        assert "KeyError" == entry["exception"][0]["exc_type"]


@pytest.mark.parametrize(
    "key", ["token", "bearerToken", "password", "secret", "Authorization", "api_key", "privateKey"]
)
def test_values_of_secret_keys_are_redacted(key: str) -> None:
    assert {key: REDACTED} == redacted(None, "", {key: "abc"})
    assert {"outer": [{key: REDACTED}]} == redacted(None, "", {"outer": [{key: "abc"}]})


@pytest.mark.parametrize("key", ["name", "secretName", "envFromSecret", "pull_secret_names", "tokenCount"])
def test_names_of_secrets_are_not_redacted(key: str) -> None:
    assert {key: "hf-token-secret"} == redacted(None, "", {key: "hf-token-secret"})


def test_values_of_environment_variables_are_redacted() -> None:
    other = {"name": "B", "valueFrom": {"fieldRef": {}}}
    found = redacted(None, "", {"env": [{"name": "A", "value": "x"}, other]})
    assert {"env": [{"name": "A", "value": REDACTED}, other]} == found


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("rfc3339", "2023-11-14T22:13:20Z"),
        ("rfc3339nano", "2023-11-14T22:13:20.012345678Z"),
        ("iso8601", "2023-11-14T22:13:20.012Z"),
        ("epoch", 1700000000.0123456),
        ("millis", 1700000000012.3457),
        ("nano", 1700000000012345678),
    ],
)
def test_times_are_written_as_zap_does(form: TimeFormat, expected: object) -> None:
    assert expected == written(1700000000012345678, form)


def lines_about(limit: LinesPerObject, key: str, count: int, method: str = "info") -> list[EventDict]:
    """The entries that are written of so many about one object."""
    found = list[EventDict]()
    for _ in range(count):
        with suppress(structlog.DropEvent):
            entry = {"event": "x", "namespace": "default", "key": key}
            found.append(limit(None, method, entry))
    return found


def test_lines_about_one_object_are_limited_and_those_of_others_are_not() -> None:
    now = 0.0
    limit = LinesPerObject(lambda: now)
    assert BURST == len(lines_about(limit, "default/loud", BURST + 7))
    assert 1 == len(lines_about(limit, "default/quiet", 1))
    assert 1 == len(lines_about(limit, "default/loud", 1, "debug"))
    now = 1.0
    (line,) = lines_about(limit, "default/loud", 1)
    assert 7 == line["dropped"]
    now = 2.0
    (line,) = lines_about(limit, "default/loud", 1)
    assert "dropped" not in line
    for _ in range(2 * BURST):
        assert limit(None, "info", {"event": "a line about no object"})


def test_the_dropped_lines_of_a_forgotten_object_are_logged() -> None:
    limit = LinesPerObject(lambda: 0.0)
    lines_about(limit, "default/loud", BURST + 7)
    with capture_logs() as logged:
        for number in range(REMEMBERED_LIMIT):
            lines_about(limit, f"default/{number}", 1)
    assert [("default/loud", 7)] == [(each["object"], each["dropped"]) for each in logged]


def test_objects_that_are_quiet_again_are_forgotten_and_their_dropped_lines_logged() -> None:
    now = 0.0
    limit = LinesPerObject(lambda: now)
    lines_about(limit, "default/loud", BURST + 7)
    lines_about(limit, "default/deleted", 1)
    now = BURST * REFILL_SECONDS
    with capture_logs() as logged:
        assert BURST == len(lines_about(limit, "default/chat", BURST + 1))
    assert [("default/loud", 7)] == [(line["object"], line["dropped"]) for line in logged]
    now += 1.0
    assert 1 == len(lines_about(limit, "default/chat", 2)), "the object in use is not forgotten"


def test_lines_about_one_object_are_limited_in_the_stream() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format="json"), stream)
    for _ in range(BURST + 50):
        structlog.get_logger("ours").info("x", key="default/loud")
    assert BURST <= len(entries(stream)) < BURST + 50


@pytest.mark.parametrize("form", ["json", "console"])
def test_text_of_users_cannot_forge_lines_or_control_a_terminal(form: LogFormat) -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format=form), stream)
    evil = 'x"\n{"level": "error"}\x1b[2J\u202e'
    structlog.get_logger("ours").warning(evil, error=evil, conditions=[evil])
    assert 1 == len(stream.getvalue().splitlines())
    assert stream.getvalue().rstrip("\n").isprintable()
    assert "\\u001b" not in stream.getvalue()


class _Full(io.StringIO):
    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("is_closed", [False, True], ids=["full", "closed"])
def test_a_log_stream_that_fails_ends_no_reconcile(is_closed: bool) -> None:
    stream = _Full()
    configure(LoggingSettings(format="json"), stream)
    if is_closed:
        stream.close()
    structlog.get_logger("ours").warning("hello", size={1})


def test_values_are_written_as_text_of_limited_length() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format="json"), stream)
    structlog.get_logger("ours").warning("w" * 10_000, error="e " * 10_000, size={1}, name="\ud800")
    (line,) = entries(stream)
    assert "{1}" == line["size"]
    assert TEXT_LIMIT == len(line["message"])
    assert len(line["error"]) <= TEXT_LIMIT
