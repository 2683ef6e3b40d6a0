"""Objects that a tenant may store while webhooks are off: over the size limit, just below it, and odd."""

from collections.abc import Iterator
from itertools import cycle, zip_longest

from cluster.graph.graphs import service
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from kube_runtime.types.meta import Kind, Object

LARGEST_BYTES = 1_400_000
"""About what etcd stores: it refuses requests over 1.5 MiB, and the server adds managed fields."""
_SMALL, _MEDIUM, _LARGE = 2_000, 8_000, 10_000


def envs(count: int) -> list[Object]:
    """So many variables, of about 28 bytes each."""
    return [{"name": f"V{number}", "value": "x"} for number in range(count)]


def _graphs() -> dict[str, Object]:
    frontend = service("frontend")
    volumes = {
        "volumes": [{"name": f"v{number}", "emptyDir": {}} for number in range(400)],
        "mainContainer": {
            "image": "i",
            "volumeMounts": [{"name": f"v{number}", "mountPath": f"/{number}"} for number in range(400)],
        },
    }
    scripts = {"long-script": "a/" * 110_000, "largest-script": "--a='" * (LARGEST_BYTES // 5)}
    return {
        "largest-variables": {"services": {"a": {**frontend, "envs": envs(LARGEST_BYTES // 29)}}},
        "long-name": {"services": {"x" * 350_000: frontend}},
        "many-variables": {"services": {"a": {**frontend, "envs": envs(_LARGE)}}},
        "some-variables": {"services": {"a": {**frontend, "envs": envs(_SMALL)}}},
        "shared-variables": {
            "envs": envs(3000),
            "services": {f"s{number}": frontend for number in range(20)},
        },
        **{
            name: {
                "services": {
                    "a": {**frontend, "extraPodSpec": {"mainContainer": {"image": "i", "args": [text]}}}
                }
            }
            for name, text in scripts.items()
        },
        "many-volumes": {"services": {"a": {**frontend, "extraPodSpec": volumes}}},
    }


def _requests() -> dict[str, Object]:
    profiling = {"profilerImage": "r/p:1", "config": {"sla": {"ttft": 200}}}
    request = {"model": "m", "backend": "vllm"}
    deep: Object = {}
    for _ in range(150):  # the server reads no deeper
        deep = {"a": deep}
    configs: dict[str, Object] = {
        "largest-configuration": {f"k{number}": "x" * 40 for number in range(25_000)},
        "wide-configuration": {f"k{number}": {"v": number} for number in range(9_000)},
        "deep-configuration": {"sla": {"ttft": 200}, "deep": deep},
    }
    return {
        **{
            name: {**request, "profilingConfig": {**profiling, "config": {**config}}}
            for name, config in configs.items()
        },
        "request-variables": {**request, "profilingConfig": {**profiling, "env": envs(_MEDIUM)}},
    }


def hostile_objects() -> Iterator[tuple[str, Kind, Object]]:
    """What it is, its kind and its spec; without end, of all kinds in turns."""
    frontend = {"componentType": "frontend", "extraPodSpec": {"mainContainer": {"image": "i"}}}
    components: dict[str, Object] = {
        "component-variables": {**frontend, "envs": envs(_MEDIUM)},
        "largest-component": {**frontend, "envs": envs(LARGEST_BYTES // 29)},
    }
    models: dict[str, Object] = {
        "long-model": {"modelName": "a/" * 600_000, "baseModelName": "b"},
        "long-base": {"modelName": "a", "baseModelName": "b-" * 100_000},
    }
    kinds = {
        DynamoGraphDeployment.KIND: _graphs(),
        DynamoGraphDeploymentRequest.KIND: _requests(),
        DynamoComponentDeployment.KIND: components,
        DynamoModel.KIND: models,
    }
    of_each = ([(what, kind, spec) for what, spec in specs.items()] for kind, specs in kinds.items())
    yield from cycle(found for row in zip_longest(*of_each) for found in row if found)
