"""Each pod of a base model is an endpoint once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from dynamo_operator.models.plan import Endpoint, Lora, endpoints, services
from kube_runtime.types.kinds import EndpointSlice, Pod

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
    node = {"addresses": ["10.8.0.1"], "targetRef": {"kind": "Node", "name": "n1"}}
    found = endpoints(
        BASE,
        [
            slice_(
                SERVICE,
                pod("a", "10.8.0.11", ready=True),
                node,
                {"addresses": ["10.8.0.2"]},
                pod("c", "10.8.0.13", "fd00::13", ready=False),
                pod("d", "10.8.0.14", ready=True, terminating=True),
                pod("e", "10.8.0.15"),
            )
        ],
        {},
        EVERYWHERE,
    )
    assert [
        ("a", "http://10.8.0.11:9090", True),
        ("c", "http://10.8.0.13:9090", False),
        ("c", "http://[fd00::13]:9090", False),
        ("d", "http://10.8.0.14:9090", False),
        ("e", "http://10.8.0.15:9090", True),
    ] == [(each.pod_name, each.address, each.is_callable) for each in found]


def test_a_slice_without_endpoints_is_empty() -> None:
    raw = b'{"metadata": {"name": "s"}, "endpoints": null}'
    assert () == endpoints(BASE, [msgspec.json.decode(raw, type=EndpointSlice)], {}, EVERYWHERE)


def test_slices_of_other_services_count_only_where_the_models_own_is_missing() -> None:
    own = slice_(SERVICE, pod("a", "10.8.0.11"), pod("a", "10.8.0.11"))
    other = slice_("chat-decode", pod("a", "10.8.0.11"), pod("b", "10.8.0.12"))
    assert ["a"] == [each.pod_name for each in endpoints(BASE, [other, own], {}, EVERYWHERE)]
    assert ["a", "b"] == [each.pod_name for each in endpoints(BASE, [other], {}, EVERYWHERE)]
    assert ("chat-decode", SERVICE) == services([own, other, slice_("")])


def remembered(*, is_callable: bool = True) -> Endpoint:
    known = Endpoint("http://10.8.0.11:9090", "uid-a", is_callable=is_callable, restarts=0)
    return replace(known, loaded=Lora("support", "s3://w"), checked_at=NOW)


def test_what_is_known_of_a_pod_is_kept_while_it_is_the_same_pod() -> None:
    known = remembered()
    (found,) = endpoints(
        BASE,
        [slice_(SERVICE, pod("a", "10.8.0.11"))],
        {("uid-a", known.address): known},
        EVERYWHERE,
    )
    assert replace(known, pod_name="a") == found
    (other,) = endpoints(
        BASE,
        [slice_(SERVICE, pod("a", "10.8.0.11"))],
        {("uid-before", known.address): known},
        EVERYWHERE,
    )
    assert other.loaded is None


def test_a_pod_that_was_not_ready_is_looked_at_again() -> None:
    known = remembered(is_callable=False)
    (found,) = endpoints(
        BASE,
        [slice_(SERVICE, pod("a", "10.8.0.11"))],
        {("uid-a", known.address): known},
        EVERYWHERE,
    )
    assert known.loaded == found.loaded
    assert None is found.checked_at


def test_only_a_pods_own_address_is_called() -> None:
    found = slice_(SERVICE, pod("a", "10.8.0.11", "169.254.169.254"))
    ends = endpoints(BASE, [found], {}, pods("10.8.0.11"))
    assert [True, False] == [each.is_callable for each in ends]
    (unknown, _) = endpoints(BASE, [found], {}, lambda _: None)
    assert not unknown.is_callable
    (others, _) = endpoints(BASE, [found], {}, pods("10.8.0.11", **{next(iter(HASH)): "other"}))
    assert not others.is_callable


def test_what_an_earlier_operator_noted_goes_by_address() -> None:
    known = replace(remembered(), pod_uid="")
    one = slice_(SERVICE, pod("a", "10.8.0.11"))
    (found,) = endpoints(BASE, [one], {known.id: known}, EVERYWHERE)
    assert ("uid-a", known.loaded) == (found.pod_uid, found.loaded)
