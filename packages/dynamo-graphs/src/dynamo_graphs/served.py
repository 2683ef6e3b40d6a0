"""The version of an object that a cluster serves: v1beta1 needs the operator's webhooks."""

from dynamo_graphs.reader import Missing, Reading, served_kind
from dynamo_graphs.versions import VERSIONS, Version, has_versions, in_version
from dynamo_operator.component.api import GROUP
from kube_runtime.types.meta import Kind, Object


async def in_served_version(reading: Reading, document: Object) -> tuple[Kind, Object]:
    """The kind of an object, and the object in its version or, if that is not served, in the other.

    Raises:
        Missing: the cluster serves the kind in no version of the object.
        InvalidObject, ConversionError: as `in_version`.
    """
    if kind := await served_kind(reading, document):
        return kind, document
    own, name = document["apiVersion"], document["kind"]
    versions: list[Version] = [it for it in VERSIONS if has_versions(document) and f"{GROUP}/{it}" != own]
    for version in versions:
        if kind := await served_kind(reading, {**document, "apiVersion": f"{GROUP}/{version}"}):
            return kind, in_version(document, version)
    others = (f"{GROUP}/{version}" for version in versions)
    raise Missing(" nor ".join((f"{own} {name} is not served by the cluster", *others)))
