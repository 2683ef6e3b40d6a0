"""A problem of an object in v1beta1 is translated in time like the size of the object, or of the message."""

from collections.abc import Callable
from typing import Any

import pytest

from adversary.growth import Work, is_steep, is_suspect
from dynamo_operator.shared.written import Written, message
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Object

FIRST, QUICK_SECONDS = 2_000, 0.02
VERSIONS = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"


def graph(size: int = 1, **main: Any) -> Object:
    """A graph of that many components with such a main container."""
    template = {"spec": {"containers": [{"name": "main", **main}]}}
    components = [{"name": f"c{number}", "podTemplate": template} for number in range(size)]
    head = {"apiVersion": VERSIONS[1], "kind": "DynamoGraphDeployment"}
    return {**head, "spec": {"components": components}}


def entries(size: int) -> list[Object]:
    return [{"name": f"n{number}", "mountPath": f"/{number}"} for number in range(size)]


PATHS: dict[str, Callable[[int], tuple[Object, str]]] = {
    "components": lambda size: (graph(size), f"spec.services.c{size - 1}.replicas"),
    "variables": lambda size: (graph(env=entries(size)), f"spec.services.c0.envs[{size - 1}].name"),
    "mounts": lambda size: (
        graph(volumeMounts=entries(size)),
        f"spec.services.c0.volumeMounts[{size - 1}].name",
    ),
    "a path of dots": lambda size: (graph(), f"spec.services.c0.{'a.' * size}"),
}
TEXTS: dict[str, Callable[[int], str]] = {
    "fields": lambda size: f"spec{'.a' * size}",
    "keys": lambda size: f"spec{'[a]' * size}",
    "open keys": lambda size: f"spec{'[' * size}",
    "quotes": lambda size: '"' * size,
    "words": lambda size: "service " * size,
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path(name: str) -> None:
    def work(size: int) -> Work:
        document, path = PATHS[name](size)
        written = Written(document, convert(document, VERSIONS[0]))
        return lambda: written.path(path)

    assert not (is_suspect(work, FIRST, QUICK_SECONDS) and is_steep(work, FIRST))


@pytest.mark.parametrize("name", TEXTS)
def test_a_message(name: str) -> None:
    def work(size: int) -> Work:
        text = TEXTS[name](size)
        return lambda: message(text)

    assert not (is_suspect(work, FIRST, QUICK_SECONDS) and is_steep(work, FIRST))
