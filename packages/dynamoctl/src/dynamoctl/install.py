"""`dynamoctl install` and `dynamoctl images`: what an installation consists of."""

import sys

from dynamo_graphs.files.yaml_writer import write_yaml
from dynamo_graphs.product import version
from dynamoctl.installation.images import images
from dynamoctl.installation.manifests import Choices, manifests
from kube_runtime.errors import ConfigError


def print_manifests(choices: Choices, *, prints: bool) -> None:
    """Print the objects of an installation.

    Raises: ConfigError if it was not asked to print: it does nothing else.
    """
    if not prints:
        advice = "add --print and pipe the output into: kubectl apply --server-side -f -"
        raise ConfigError("dynamoctl install", f"does not change a cluster; {advice}")
    write_yaml(manifests(choices), sys.stdout)


def print_images(registry: str, output: str) -> None:
    """Print the images, one per line; to copy them, each with what it is called in the registry.

    Raises: ConfigError if they must be copied and no registry is named.
    """
    if output == "names":
        for image in images(version(), registry):
            print(image)
        return
    if not registry:
        raise ConfigError(
            "dynamoctl images",
            ("--output=pairs requires --registry, the registry to copy the images to"),
        )
    for source, target in zip(images(version()), images(version(), registry), strict=True):
        print(f"{source} {target}")
