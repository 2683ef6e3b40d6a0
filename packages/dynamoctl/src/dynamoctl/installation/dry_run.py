"""What can only be learned by trying, and from what is in a namespace: admission, images, credentials."""

from collections.abc import Iterator

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_operator.reconcile.read import registries_only
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.upgrade_preview import PULL_SECRETS
from kube_runtime.kind import Object
from kube_runtime.types.core import PullSecret


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


def _images(value: object) -> Iterator[str]:
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
