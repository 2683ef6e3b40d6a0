"""What can only be learned by trying, and from what is in a namespace: admission, images, credentials."""

from collections.abc import Iterator
from typing import Any

from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.controllers.gather import registries_only
from dynamo_operator.installation.foreseen import PULL_SECRETS
from dynamo_operator.installation.reading import Reading
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.core import PullSecret


async def tried_mistake(reading: Reading, namespace: str) -> str:
    """What the API server says, in a dry run, to a graph that breaks a rule of admission, not its schema."""
    graph = DynamoGraphDeployment.KIND
    service = {"componentType": "frontend", "ingress": {"enabled": True}}
    body: Object = {
        "apiVersion": graph.api_version,
        "kind": graph.name,
        "metadata": {"name": "dynamoctl-check", "namespace": namespace},
        "spec": {"services": {"Frontend": service}},
    }
    return await reading.tried(graph, body)


async def images_of_graphs(reading: Reading, namespace: str) -> set[str]:
    """The images that the graphs of a namespace name."""
    found = await reading.client.get_json(DynamoGraphDeployment.KIND.path(namespace))
    return {image for each in found["items"] for image in _images(each.get("spec"))}


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "image" and isinstance(each, str):
                yield each
            else:
                yield from _images(each)
    elif isinstance(value, list):
        for each in value:
            yield from _images(each)


async def registries(reading: Reading, namespace: str) -> set[str]:
    """The registries that pull secrets of a namespace are for."""
    secrets = await reading.all(PullSecret, namespace=namespace, fields=PULL_SECRETS)
    return {host for each in secrets for host in registries_only(each).data}
