"""A kind of tests, with one decoded field."""

from typing import Any, ClassVar

from kube_runtime.cache.informer import Watches
from kube_runtime.types.meta import Key, Kind, Object, Resource, Status, Struct
from kube_runtime.wire import path_of

NAMESPACE = "default"


class GadgetSpec(Struct, frozen=True):
    """Only `size` is decoded; a test may put other fields into the spec."""

    size: int = 0


class GadgetStatus(Status, frozen=True):
    ready: int = 0


class Gadget(Resource):
    """A namespaced kind with a status."""

    KIND = Kind("example.com", "v1", "Gadget", "gadgets")

    spec: GadgetSpec = GadgetSpec()
    status: GadgetStatus = GadgetStatus()


class OfGadgets:
    """What each controller of gadgets alone reads."""

    reconciles: ClassVar[type[Resource]] = Gadget
    owns: ClassVar[tuple[type[Resource], ...]] = ()
    watches: tuple[Watches, ...] = ()


class Maker(Resource):
    """A kind whose objects own gadgets."""

    KIND = Kind("example.com", "v1", "Maker", "makers")


GADGETS = path_of(Gadget.KIND)
MAKERS = path_of(Maker.KIND)


def key(name: str) -> Key:
    return Key(NAMESPACE, name)


def gadget(name: str, size: Any = 0, *, owner_uid: str = "", **metadata: Any) -> Object:
    """The manifest of a gadget; `size` is an integer, unless the gadget should be malformed."""
    owners = [{"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": owner_uid}]
    return {
        "apiVersion": Gadget.KIND.api_version,
        "kind": Gadget.KIND.name,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            **({"ownerReferences": owners} if owner_uid else {}),
            **metadata,
        },
        "spec": {"size": size},
    }
