"""Take over objects that another operator wrote by PUT, so that undesired fields disappear.

An apply removes only the fields that its own manager set before. Fields of another manager would stay
forever. So before the first apply, the entry of that manager in `managedFields` becomes ours, as client-go's
`csaupgrade` does; no value changes. The name of a manager is that of some binary, so its entry is found by
an annotation that the other operator wrote on each object.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from kube_runtime.apply.writer import Writer
from kube_runtime.errors import NotFound
from kube_runtime.kind import Object
from kube_runtime.types.meta import R, Resource

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ManagedFieldsUpgrade:
    """Makes us the manager of what an earlier operator set; `mark` is an annotation that it wrote."""

    writer: Writer
    mark: str

    def is_due(self, live: Resource) -> bool:
        """Whether the earlier operator wrote an object, and we have not applied it since."""
        return self.mark in live.metadata.annotations

    async def __call__(self, live: R) -> R:
        """Become the manager of the fields of an object: one read and at most one patch.

        Raises:
            Conflict: it has changed since it was read; the caller retries at once.
            OperatorError: the API server is unreachable or failed.
        """
        try:
            stored = await self.writer.client.get_raw(live.KIND, live.key)
        except NotFound:
            return live  # the apply that follows fails
        metadata = stored["metadata"]
        entries = with_manager(
            metadata.get("managedFields", ()),
            mark=self.mark,
            manager=self.writer.client.field_manager,
        )
        if entries is None:
            return live
        version = metadata["resourceVersion"]
        patch: Object = {"metadata": {"resourceVersion": version, "managedFields": entries}}
        uid = live.metadata.uid
        taken = await self.writer.merge_patch(type(live), live.key, patch, uid=uid)
        _log.info("taken over from an earlier operator", kind=str(live.KIND), object=str(live.key))
        return taken


def with_manager(entries: Sequence[Object], *, mark: str, manager: str) -> list[Object] | None:
    """Move the fields that the writer of `mark` updated to those that `manager` applied.

    Entries of others, of subresources and of other API versions stay as they are. None means: nothing to
    move.
    """
    marked = [entry for entry in entries if _is("Update", entry) and _owns(entry, mark)]
    if not marked:
        return None
    ours = [entry for entry in entries if _is("Apply", entry) and entry["manager"] == manager]
    version = (ours or marked)[0]["apiVersion"]
    earlier = {entry["manager"] for entry in marked}
    theirs = [entry for entry in entries if _is("Update", entry) and entry["manager"] in earlier]
    moved = [entry for entry in theirs if entry["apiVersion"] == version]
    if not moved:
        return None
    fields: Object = {}
    for entry in (*ours, *moved):
        fields = _union(fields, entry["fieldsV1"])
    latest = max((*ours, *moved), key=lambda entry: entry.get("time") or "")
    merged = {**latest, "manager": manager, "operation": "Apply", "fieldsV1": fields}
    return [*(entry for entry in entries if entry not in ours and entry not in moved), merged]


def _is(operation: str, entry: Object) -> bool:
    """Whether an entry is about that operation, and not about a subresource."""
    is_readable = entry.get("fieldsType") == "FieldsV1" and {"fieldsV1", "manager"} <= entry.keys()
    return is_readable and not entry.get("subresource") and entry.get("operation") == operation


def _owns(entry: Object, annotation: str) -> bool:
    fields: Any = entry["fieldsV1"]
    return f"f:{annotation}" in fields.get("f:metadata", {}).get("f:annotations", {})


def _union(left: Object, right: Object) -> Object:
    """The union of two sets of fields in the format FieldsV1.

    A field with members is itself in a set if it has the member ".".
    """
    result = dict(left)
    for name, theirs in right.items():
        ours = left.get(name)
        if ours is None:
            result[name] = theirs
        elif not ours or not theirs:
            inside = ours or theirs
            result[name] = {".": {}, **inside} if inside else {}
        else:
            result[name] = _union(ours, theirs)
    return result
