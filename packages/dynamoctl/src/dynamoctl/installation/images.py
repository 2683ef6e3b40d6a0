"""The images that an installation may pull, for clusters without access to public registries."""

from dynamo_graphs.product import version
from dynamo_graphs.settings import RenderSettings
from dynamo_legacy.settings import LegacySettings
from kube_runtime.errors import ConfigError

OPERATOR = "dynamo-operator"
NATS = "nats:2.14.9-alpine"
ETCD = "quay.io/coreos/etcd:v3.6.8"


def images(release: str, registry: str = "") -> tuple[str, ...]:
    """The images of a version: the operator's, then those that only some graphs or chart values need.

    `registry` replaces the registry of each, as the chart's `global.imageRegistry` does.
    """
    older = LegacySettings()
    builders = (older.buildkit_image, older.buildkit_rootless_image)
    originals = (f"{OPERATOR}:{release}", RenderSettings().debugger_image, NATS, ETCD, *builders)
    return tuple(from_registry(image, registry) for image in originals)


def from_registry(image: str, registry: str) -> str:
    """The image's name in another registry; "" keeps its own."""
    if not registry:
        return image
    first, slash, rest = image.partition("/")
    has_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return f"{registry.rstrip('/')}/{rest if has_host else image}"


def print_images(registry: str, output: str) -> None:
    """Print the images, one per line; as `pairs` with their names in the registry.

    Raises: ConfigError for `pairs` without a registry.
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
