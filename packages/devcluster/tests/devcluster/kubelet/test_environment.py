"""The environment of a container: what it refers to, in which order, and what is missing."""

import asyncio

import pytest

from devcluster.kubelet.environment import Facts, MissingReference, environment, expanded
from kube_runtime.types.meta import Object

FACTS = Facts({"metadata.name": "chat-0"}, {"app": "chat"}, {})
OBJECTS: dict[tuple[str, str], Object] = {
    ("Secret", "token"): {"data": {"HF_TOKEN": "c2VjcmV0"}},
    ("ConfigMap", "settings"): {"data": {"MODE": "kv", "SHARED": "map"}},
}


async def read(kind: str, name: str) -> Object | None:
    return OBJECTS.get((kind, name))


def variables(container: Object) -> dict[str, str]:
    return asyncio.run(environment(container, FACTS, read))


def test_later_sources_win_and_values_may_refer_to_earlier_ones() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "token"}, "prefix": "X_"}],
        "env": [
            {"name": "SHARED", "value": "own"},
            {"name": "URL", "value": "http://$(SHARED)/$(NONE)/$$(SHARED)"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "T", "valueFrom": {"secretKeyRef": {"name": "token", "key": "HF_TOKEN"}}},
            {"name": "NO", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x", "optional": True}}},
        ],
    }
    assert variables(container) == {
        "MODE": "kv",
        "SHARED": "own",
        "X_HF_TOKEN": "secret",
        "URL": "http://own/$(NONE)/$(SHARED)",
        "POD": "chat-0",
        "APP": "chat",
        "T": "secret",
    }


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"envFrom": [{"secretRef": {"name": "none"}}]}, 'secret "none" not found'),
        (
            {"env": [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "token", "key": "other"}}}]},
            "couldn't find key other in Secret token",
        ),
        (
            {"env": [{"name": "T", "valueFrom": {"fieldRef": {"fieldPath": "spec.volumes"}}}]},
            'fieldPath "spec.volumes" is not supported',
        ),
    ],
)
def test_what_is_missing_is_named(container: Object, message: str) -> None:
    with pytest.raises(MissingReference, match=message):
        variables(container)


def test_nothing_is_expanded_twice() -> None:
    assert expanded("$(A)", {"A": "$(B)", "B": "b"}) == "$(B)"
