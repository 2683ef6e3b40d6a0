"""An object is converted in time proportional to its size, whatever grows in it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from adversary.growth import Work, is_steep, is_suspect
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Object

OLD, NEW = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
FIRST, QUICK_SECONDS = 2_000, 0.02
"""Items at the first size; and what is that quick at four times the size needs no closer look."""


def service(**fields: Any) -> Object:
    return {"apiVersion": OLD, "kind": "DynamoGraphDeployment", "spec": {"services": {"W": fields}}}


def component(saved: Object | None = None, **fields: Any) -> Object:
    """A graph with that component, and a payload with that service."""
    return {
        "apiVersion": NEW,
        "kind": "DynamoGraphDeployment",
        **annotated({"services": {"W": saved or {}}}),
        "spec": {"components": [{"name": "W", **fields}]},
    }


def annotated(payload: Object) -> Object:
    text = json.dumps({"version": 1, "spec": payload})
    return {"metadata": {"annotations": {"nvidia.com/dgd-spec": text}}}


def noted(typed: Object) -> Object:
    return {"metadata": {"annotations": {"nvidia.com/dgd-typed": json.dumps({"spec": typed})}}}


def main(**fields: Any) -> Object:
    return {"spec": {"containers": [{"name": "main", **fields}]}}


def entries(size: int, *, is_same: bool, **fields: Any) -> list[Object]:
    return [
        {"name": "v", "mountPoint": "/m" if is_same else f"/{number}", **fields} for number in range(size)
    ]


def mounts(size: int, *, is_same: bool) -> list[Object]:
    return [{"name": "v", "mountPath": "/m" if is_same else f"/{number}"} for number in range(size)]


def named(size: int, *, is_same: bool) -> list[Object]:
    return [{"name": "n" if is_same else f"n{number}", "image": "i"} for number in range(size)]


CACHE = {"useAsCompilationCache": True}
GROWING: dict[str, Callable[[int, bool], Object]] = {
    "services": lambda size, is_same: {
        **service(),
        **annotated({"components": [{"name": f"s{size - number}"} for number in range(size)]}),
        "spec": {"services": {f"s{0 if is_same else number}": {} for number in range(size)}},
    },
    "components": lambda size, _: {
        **component(),
        "spec": {"components": [{"name": f"c{size - number}", "podTemplate": {}} for number in range(size)]},
    },
    "variables": lambda size, is_same: service(
        envs=named(size, is_same=is_same),
        extraPodSpec={"mainContainer": {"env": named(size, is_same=is_same)}},
    ),
    "mounts of a service": lambda size, is_same: service(
        volumeMounts=entries(size, is_same=is_same),
        extraPodSpec={"mainContainer": {"volumeMounts": mounts(size, is_same=is_same)}},
    ),
    "caches": lambda size, is_same: service(volumeMounts=entries(size, is_same=is_same, **CACHE)),
    "caches that are saved": lambda size, is_same: component(
        {"volumeMounts": entries(size, is_same=is_same, **CACHE)},
        compilationCache={"pvcName": "v", "mountPath": "/m" if is_same else "/0"},
        podTemplate=main(volumeMounts=mounts(size, is_same=is_same)),
    ),
    "mounts of both": lambda size, is_same: component(
        {
            "volumeMounts": entries(size, is_same=is_same),
            "extraPodSpec": {"mainContainer": {"volumeMounts": mounts(size, is_same=is_same)}},
        },
        podTemplate=main(volumeMounts=mounts(size, is_same=is_same)),
    ),
    "containers of a service": lambda size, is_same: {
        **service(extraPodSpec={"containers": named(size, is_same=is_same)}),
        **annotated(
            {
                "components": [
                    {"name": "W", "podTemplate": {"spec": {"containers": named(size, is_same=is_same)[::-1]}}}
                ]
            }
        ),
    },
    "containers of a component": lambda size, is_same: component(
        podTemplate={"spec": {"containers": named(size, is_same=is_same)}}
    ),
    "resources": lambda size, _: service(
        resources={"limits": {"custom": {f"example.com/{number}": "1000m" for number in range(size)}}}
    ),
    "a quantity": lambda size, _: service(sharedMemory={"size": "9" * size}),
    "a configuration": lambda size, _: {
        "apiVersion": OLD,
        "kind": "DynamoGraphDeploymentRequest",
        "spec": {"profilingConfig": {"config": {"sla": {f"k{number}": 1 for number in range(size)}}}},
    },
    "a payload of brackets": lambda size, _: {
        **component(),
        "metadata": {"annotations": {"nvidia.com/dgd-spec": '{"spec":' + "[" * size}},
    },
    "empty values": lambda size, is_same: service(
        envs=[{**variable, "value": ""} for variable in named(size, is_same=is_same)]
    ),
    "a note of empty values": lambda size, _: {
        **component(),
        **noted({"components": {str(number): {f"k{number}": [""]} for number in range(size)}}),
        "spec": {"components": [{"name": f"c{number}"} for number in range(size)]},
    },
    "a note of other places": lambda size, is_same: {
        **component(),
        **noted({"components": {"0": {f"k{number}": [{}] if is_same else {} for number in range(size)}}}),
    },
}


@pytest.mark.parametrize("is_same", [False, True], ids=["different", "same"])
@pytest.mark.parametrize("name", GROWING)
def test_a_conversion_takes_time_like_the_size_of_the_object(name: str, is_same: bool) -> None:
    def there(size: int) -> Work:
        body = GROWING[name](size, is_same)
        return lambda: convert(body, NEW if body["apiVersion"] == OLD else OLD)

    def back(size: int) -> Work:
        body = GROWING[name](size, is_same)
        answer = convert(body, NEW if body["apiVersion"] == OLD else OLD)
        return lambda: convert(answer, body["apiVersion"])

    for work in (there, back):
        assert not (is_suspect(work, FIRST, QUICK_SECONDS) and is_steep(work, FIRST))
