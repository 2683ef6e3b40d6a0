"""Each endpoint comes to have the wanted adapter, with no call too many."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.models.plan import (
    Call,
    Ending,
    Endpoint,
    Lora,
    LoraVerb,
    Reply,
    after,
    endpoints,
    needed,
    pending,
    plan,
    retry_seconds,
    services,
)
from kube_runtime.types.kinds import EndpointSlice, Pod

START = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = Lora("support", "s3://old"), Lora("support", "s3://new")
RENAMED = Lora("sales", "s3://new")
FAILURE = Reply(Ending.FAILED, "download failed")


def endpoint(number: int = 0, *, loaded: Lora | None = None) -> Endpoint:
    uid, checked = f"uid-{number}", START if loaded else None
    return Endpoint(f"http://10.0.0.{number}:9090", uid, is_callable=True, loaded=loaded, checked_at=checked)


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_list_that_fails_says_nothing_about_the_adapter() -> None:
    loaded = after(endpoint(loaded=NEW), Call(LoraVerb.LIST), FAILURE, now=later(300))
    assert ((), 299.0) == plan(NEW, [loaded], now=later(301))


def test_delays_double_to_half_a_minute_and_at_last_to_five_and_differ_between_pods() -> None:
    delays = [retry_seconds(replace(endpoint(), failures=count)) for count in range(20)]
    bounds = [0, 5, 10, 20, *([30] * 11), 60, 120, 240, 300, 300]
    for delay, bound in zip(delays, bounds, strict=True):
        assert 0.8 * bound <= delay <= bound
    assert 1 < len({retry_seconds(replace(endpoint(each), failures=9)) for each in range(9)})


def test_a_failure_waits_for_its_own_time_only() -> None:
    load = Call(LoraVerb.LOAD, "support", "s3://new")
    failed = after(endpoint(0), load, FAILURE, now=START)
    assert "download failed" == failed.message
    work, wait = plan(NEW, [failed, endpoint(1)], now=later(1))
    assert ["uid-1"] == [each.endpoint.pod_uid for each in work]
    assert pytest.approx(retry_seconds(failed) - 1, abs=0.001) == wait
    assert 2 == len(plan(NEW, [failed, endpoint(1)], now=later(5))[0])


def test_a_worker_without_the_api_is_asked_again_after_minutes() -> None:
    load = Call(LoraVerb.LOAD, "support", "s3://new")
    unable = after(endpoint(), load, Reply(Ending.UNABLE, "cannot"), now=START)
    assert unable.is_unable
    assert 240 <= retry_seconds(unable) <= 300


def test_an_endpoint_that_never_loaded_does_not_hold_up_new_weights() -> None:
    load = Call(LoraVerb.LOAD, "support", "s3://old")
    broken = after(endpoint(0), load, FAILURE, now=START)
    work, _ = plan(NEW, [broken, endpoint(1, loaded=OLD)], now=later(1))
    assert ["uid-1"] == [each.endpoint.pod_uid for each in work]


def test_an_unload_that_was_not_answered_may_have_taken_the_adapter() -> None:
    unsure = after(endpoint(loaded=OLD), Call(LoraVerb.UNLOAD, "support"), FAILURE, now=START)
    assert (Call(LoraVerb.LOAD, "support", "s3://old"),) == needed(OLD, unsure)
    assert unsure.is_reloading, "it counts as taken away"


@pytest.mark.parametrize("had", [None, OLD, RENAMED])
@pytest.mark.parametrize("wanted", [OLD, NEW, RENAMED])
@pytest.mark.parametrize("then", [OLD, NEW, RENAMED])
def test_wherever_calls_are_cut_off_what_was_noted_before_them_is_enough(
    had: Lora | None, wanted: Lora, then: Lora
) -> None:
    known = endpoint(loaded=had)
    calls = needed(wanted, known)
    for made in range(len(calls) + 1):
        worker, noted = Worker({had.name: had.uri} if had else {}), pending(known, calls)
        for call in calls[:made]:
            worker.answer(call, is_done=True, is_told=False)
        for call in needed(then, noted):
            reply = worker.answer(call, is_done=True, is_told=True)
            noted = after(noted, call, reply, now=START)
        assert {then.name: then.uri} == worker.loaded


def test_a_worker_that_cannot_unload_still_has_the_adapter() -> None:
    reply = Reply(Ending.UNABLE, "cannot")
    known = after(endpoint(loaded=OLD), Call(LoraVerb.UNLOAD, "support"), reply, now=START)
    assert OLD == known.loaded


@dataclass
class Worker:
    """A worker as real ones are: a load of a name that is there keeps the old weights."""

    loaded: dict[str, str] = field(default_factory=dict[str, str])

    def answer(self, call: Call, *, is_done: bool, is_told: bool) -> Reply:
        if is_done and call.verb is LoraVerb.LOAD:
            self.loaded.setdefault(call.name, call.uri)
        if is_done and call.verb is LoraVerb.UNLOAD:
            self.loaded.pop(call.name, None)
        return Reply(Ending.DONE) if is_done and is_told else FAILURE


wishes = st.builds(Lora, st.sampled_from(["a", "b", "c"]), st.sampled_from(["s3://1", "s3://2"]))
luck = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=4)


@given(st.lists(st.tuples(wishes, luck), min_size=1, max_size=6))
def test_after_any_failures_a_worker_has_the_desired_lora_only(
    story: list[tuple[Lora, list[tuple[bool, bool]]]],
) -> None:
    worker, known, now = Worker(), endpoint(), START
    for wanted, fortunes in [*story, (story[-1][0], [(True, True)] * 9)]:
        for is_done, is_told in fortunes:
            now += timedelta(seconds=300)
            for call in needed(wanted, known):
                reply = worker.answer(call, is_done=is_done, is_told=is_told)
                known = after(known, call, reply, now=now)
                if reply.ending is not Ending.DONE:
                    break
    final = story[-1][0]
    assert {final.name: final.uri} == worker.loaded
    assert final == known.loaded
    assert () == needed(final, known)


BASE = "orion/base-13b"
SERVICE = "dynamo-model-52e17085"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(name: str, *hosts: str, **conditions: bool) -> Mapping[str, object]:
    target = {"kind": "Pod", "name": name, "uid": f"uid-{name}"}
    return {"addresses": list(hosts), "conditions": conditions, "targetRef": target}


HASH = {"nvidia.com/dynamo-base-model-hash": "52e17085"}


def pods(*hosts: str, **more: str) -> Callable[[str], Pod | None]:
    """Pods named after letters, each with all of these addresses."""
    status = {"podIPs": [{"ip": each} for each in hosts]}

    def pod_of(name: str) -> Pod | None:
        metadata = {"name": name, "uid": f"uid-{name}", "labels": {**HASH, **more}}
        return msgspec.convert({"metadata": metadata, "status": status}, Pod)

    return pod_of


EVERYWHERE = pods(*(f"10.8.0.{number}" for number in range(20)), "fd00::13")


def slice_(service: str, *ends: Mapping[str, object]) -> EndpointSlice:
    labels = {"kubernetes.io/service-name": service} if service else {}
    metadata = {"name": f"{service}-x", "namespace": "team-b", "labels": labels}
    return msgspec.convert({"metadata": metadata, "endpoints": list(ends)}, EndpointSlice)


def test_pods_are_endpoints_and_nothing_else_is() -> None:
    ends = (
        pod("a", "10.8.0.11", ready=True),
        {"addresses": ["10.8.0.1"], "targetRef": {"kind": "Node", "name": "n1"}},
        {"addresses": ["10.8.0.2"]},
        pod("c", "10.8.0.13", "fd00::13", ready=False),
        pod("d", "10.8.0.14", ready=True, terminating=True),
        pod("e", "10.8.0.15"),
    )
    found = endpoints(BASE, [slice_(SERVICE, *ends)], {}, EVERYWHERE)
    assert [
        ("a", "http://10.8.0.11:9090", True),
        ("c", "http://10.8.0.13:9090", False),
        ("c", "http://[fd00::13]:9090", False),
        ("d", "http://10.8.0.14:9090", False),
        ("e", "http://10.8.0.15:9090", True),
    ] == [(each.pod_name, each.address, each.is_callable) for each in found]


def test_a_slice_without_endpoints_is_empty() -> None:
    raw = b'{"metadata": {"name": "s"}, "endpoints": null}'
    assert not any(endpoints(BASE, [msgspec.json.decode(raw, type=EndpointSlice)], {}, EVERYWHERE))


def test_slices_of_other_services_count_only_where_the_models_own_is_missing() -> None:
    own = slice_(SERVICE, pod("a", "10.8.0.11"))
    other = slice_("chat-decode", pod("a", "10.8.0.11"), pod("b", "10.8.0.12"))
    assert ["a"] == [each.pod_name for each in endpoints(BASE, [other, own], {}, EVERYWHERE)]
    assert ["a", "b"] == [each.pod_name for each in endpoints(BASE, [other], {}, EVERYWHERE)]
    assert {SERVICE} == services(BASE, [own, other])
    assert {"chat-decode"} == services(BASE, [other, slice_("")])


def found_with(uid: str, known: Endpoint) -> Endpoint:
    """The endpoint of the pod `a`, when that is known of an endpoint with the uid."""
    slices = [slice_(SERVICE, pod("a", "10.8.0.11"))]
    (endpoint,) = endpoints(BASE, slices, {(uid, known.address): known}, EVERYWHERE)
    return endpoint


def remembered(*, is_callable: bool = True) -> Endpoint:
    known = Endpoint("http://10.8.0.11:9090", "uid-a", is_callable=is_callable, restarts=0)
    return replace(known, loaded=Lora("support", "s3://w"), checked_at=NOW)


def test_what_is_known_of_a_pod_is_kept_while_it_is_the_same_pod() -> None:
    known = remembered()
    assert replace(known, pod_name="a") == found_with("uid-a", known)
    assert found_with("uid-before", known).loaded is None


def test_a_pod_that_was_not_ready_is_looked_at_again() -> None:
    known = remembered(is_callable=False)
    found = found_with("uid-a", known)
    assert (known.loaded, None) == (found.loaded, found.checked_at)
