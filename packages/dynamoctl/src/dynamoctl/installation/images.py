"""Every image that an installation may pull, for clusters that reach no public registry."""

from dynamo_graphs.settings import RenderSettings
from dynamo_legacy.settings import LegacySettings

OPERATOR = "dynamo-operator"
NATS = "nats:2.14.9-alpine"
ETCD = "quay.io/coreos/etcd:v3.6.8"


def images(version: str, registry: str = "") -> tuple[str, ...]:
    """The images of this version: the operator's, then those that only some graphs or values need.

    Those are the debugger's, the servers beside and the builders of the older generation. `registry`
    takes the place of the registry in each of them, as the chart's `global.imageRegistry` does.
    """
    older = LegacySettings()
    builders = (older.buildkit_image, older.buildkit_rootless_image)
    found = (f"{OPERATOR}:{version}", RenderSettings().debugger_image, NATS, ETCD, *builders)
    return tuple(from_registry(each, registry) for each in found)


def from_registry(image: str, registry: str) -> str:
    """The image as it is called in a registry. An empty one leaves it as it is."""
    if not registry:
        return image
    first, slash, rest = image.partition("/")
    has_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return f"{registry.rstrip('/')}/{rest if has_host else image}"
