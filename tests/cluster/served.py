"""Which versions of our kinds a cluster serves and stores.

A write of the four CRDs costs the API server 1.8 s of CPU, also if it changes nothing: so there are few.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cluster.conftest import ControlPlane
from cluster.world import Refused, World
from dynamo_operator.admission.definitions import CONVERTED
from dynamo_operator.crds import custom_resource_definition
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Kind, Object

DEFINITIONS = CustomResourceDefinition.KIND
KINDS = tuple(type_.KIND for type_ in reversed(CONVERTED))
"""The kinds with two versions. First that of the smallest CRD, which an operator writes and migrates last."""
UNANSWERED = ConversionWebhook("default", "no-operator")
"""A Service without pods: a request in the version that is not stored fails."""


@contextmanager
def serving(
    control_plane: ControlPlane, *versions: str, conversion: ConversionWebhook = UNANSWERED
) -> Iterator[None]:
    """Serve these versions, and store the first; afterwards v1alpha1 alone. See `serve`."""
    serve(control_plane, *versions, conversion=conversion)
    control_plane.install_crds()  # none: the garbage collector learns the versions by the restart
    try:
        yield
    finally:
        serve(control_plane, "v1alpha1")
        control_plane.install_crds()


def serve(control_plane: ControlPlane, *versions: str, conversion: ConversionWebhook = UNANSWERED) -> None:
    """Serve these versions, and store the first. Deletes all objects of our kinds before."""
    stored, is_alone, everywhere = versions[0], len(versions) == 1, control_plane.world("")
    empty(control_plane)
    if not is_alone or not is_stored_alone(control_plane, stored):
        define(control_plane, conversion, stored)
        status = {"status": {"storedVersions": [stored]}}
        for kind in KINDS:
            if [stored] != stored_versions(everywhere, kind):
                everywhere.patch(DEFINITIONS, str(kind), status, "status")
    if is_alone:
        define(control_plane, None, stored)
    control_plane.kubectl_knows(is_later_served="v1beta1" in versions)


def define(
    control_plane: ControlPlane, conversion: ConversionWebhook | None, stored: str, *, warns: bool = False
) -> None:
    """Have the API server store objects in that version, and serve the other one if there is a conversion.

    A CA bundle that an operator has written stays.
    """
    everywhere = control_plane.world("")
    for type_ in reversed(CONVERTED):
        spec = custom_resource_definition(type_, conversion, stored, warns=warns)["spec"]
        patch = {**spec, "conversion": _replaced(spec.get("conversion"))}
        everywhere.patch(DEFINITIONS, str(type_.KIND), {"spec": patch})


def _replaced(conversion: Object | None) -> Object:
    """A merge patch to this conversion."""
    if conversion is None:
        return {"strategy": "None", "webhook": None}
    webhook = conversion["webhook"]
    client = {"service": None, "url": None, **webhook["clientConfig"]}
    return {**conversion, "webhook": {**webhook, "clientConfig": client}}


def stored_versions(everywhere: World, kind: Kind) -> list[str]:
    """The versions in which there may be objects of the kind."""
    versions: list[str] = everywhere.read(DEFINITIONS, str(kind))["status"]["storedVersions"]
    return versions


def is_stored_alone(control_plane: ControlPlane, version: str) -> bool:
    """Whether each kind is stored in this version, and no object in another one."""
    everywhere = control_plane.world("")
    return all([version] == stored_versions(everywhere, kind) for kind in KINDS)


def empty(control_plane: ControlPlane) -> None:
    """Delete all objects of our kinds, in the version that is stored, and wait for that.

    Tests before may have left some, with finalizers of an operator that has stopped.
    """
    everywhere = control_plane.world("")
    readable = [_as_stored(everywhere, kind) for kind in reversed(KINDS)]  # owners first
    everywhere.until(lambda: not sum(_removed(everywhere, kind) for kind in readable))


def _as_stored(everywhere: World, kind: Kind) -> Kind:
    versions = everywhere.read(DEFINITIONS, str(kind))["spec"]["versions"]
    (stored,) = (version["name"] for version in versions if version["storage"])
    return Kind(kind.group, stored, kind.name, kind.plural)


def _removed(everywhere: World, kind: Kind) -> int:
    """How many objects there were to delete."""
    bodies = everywhere.list(kind)
    for body in bodies:
        metadata = body["metadata"]
        world = World(everywhere.server, everywhere.tls, metadata["namespace"])
        with suppress(Refused):  # gone meanwhile
            if metadata.get("finalizers"):
                world.patch(kind, metadata["name"], {"metadata": {"finalizers": None}})
            world.delete(kind, metadata["name"])
    return len(bodies)
