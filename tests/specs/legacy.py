"""Components of the older generation, and what they are rendered to."""

from typing import Any

import msgspec

from dynamo_legacy.api import DynamoNimDeployment, DynamoNimSpec
from dynamo_legacy.render import nim_objects
from dynamo_legacy.settings import LegacySettings
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object

IMAGE = DynamoNimSpec(tag="graph:v1", image="reg.example.com/x:1", image_pull_secrets=({"name": "pull"},))


def nim(name: str = "service1", **spec: Any) -> DynamoNimDeployment:
    body = {
        "metadata": {"name": name, "namespace": "ml", "uid": "u-1"},
        "spec": {"dynamoNim": "graph--v1", "dynamoTag": "graphs.agg:Frontend", **spec},
    }
    return msgspec.convert(body, DynamoNimDeployment)


def rendered(
    component: DynamoNimDeployment,
    settings: RenderSettings = RenderSettings(),  # noqa: B008  # frozen
    legacy: LegacySettings = LegacySettings(),  # noqa: B008
    live: int | None = None,
) -> dict[str, Object]:
    around, workloads = nim_objects(component, IMAGE, Facts(), settings, legacy, live)
    return {manifest["kind"]: manifest for manifest in (*around, *workloads)}


def pod(component: DynamoNimDeployment, legacy: LegacySettings = LegacySettings()) -> Object:  # noqa: B008
    spec: Object = rendered(component, legacy=legacy)["Deployment"]["spec"]["template"]["spec"]
    return spec


def main(component: DynamoNimDeployment, legacy: LegacySettings = LegacySettings()) -> Object:  # noqa: B008
    container: Object = pod(component, legacy)["containers"][-1]
    return container
