"""Clusters that serve other versions of our kinds than v1alpha1 alone, while no webhook converts."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from cluster.conftest import ControlPlane
from cluster.world import Refused, World
from dynamo_operator.admission.definitions import CONVERTED
from dynamo_operator.crds import custom_resource_definitions
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Kind, Object

DEFINITIONS = CustomResourceDefinition.KIND
KINDS = tuple(type_.KIND for type_ in CONVERTED)
UNANSWERED = ConversionWebhook("default", "no-operator")
"""A Service without pods: a request in the version that is not stored fails."""


@contextmanager
def serving(control_plane: ControlPlane, *versions: str) -> Iterator[None]:
    """Serve these versions, and store the first. Deletes all objects of our kinds, before and afterwards."""
    _serve(control_plane, versions)
    try:
        yield
    finally:
        _serve(control_plane, ("v1alpha1",))


def _serve(control_plane: ControlPlane, versions: Sequence[str]) -> None:
    stored, everywhere = versions[0], control_plane.world("")
    everywhere.until(lambda: _is_empty(everywhere))
    # An operator that converted may have left its address.
    _patch(control_plane, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
    _apply(control_plane, *custom_resource_definitions(UNANSWERED, stored))
    _patch(control_plane, {"status": {"storedVersions": [stored]}}, "--subresource=status")
    if len(versions) == 1:
        _apply(control_plane, *custom_resource_definitions(None, stored))
    control_plane.install_crds()  # none: the garbage collector learns the versions by the restart
    control_plane.kubectl_knows(is_later_served="v1beta1" in versions)


def _patch(control_plane: ControlPlane, patch: Object, *flags: str) -> None:
    for kind in KINDS:
        control_plane.kubectl(
            "patch", "crd", str(kind), "--type=merge", f"--patch={json.dumps(patch)}", *flags
        )


def _apply(control_plane: ControlPlane, *crds: Object) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": crds})
    control_plane.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", input=text)
    control_plane.kubectl("wait", "--for=condition=Established", "crd", *map(str, KINDS))


# Tests before may have left objects, with finalizers of an operator that has stopped. Children first: no
# operator may create them again.
def _is_empty(everywhere: World) -> bool:
    left = False
    for kind in KINDS:
        definition = everywhere.read(DEFINITIONS, str(kind))
        (stored,) = (it["name"] for it in definition["spec"]["versions"] if it["storage"])
        readable = Kind(kind.group, stored, kind.name, kind.plural)
        for body in everywhere.list(readable):
            left = True
            metadata = body["metadata"]
            world = World(everywhere.server, everywhere.tls, metadata["namespace"])
            with suppress(Refused):  # gone meanwhile
                world.patch(readable, metadata["name"], {"metadata": {"finalizers": None}})
                world.delete(readable, metadata["name"])
    return not left
