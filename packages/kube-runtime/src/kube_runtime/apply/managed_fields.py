"""Take over objects that another operator wrote by PUT, so that undesired fields disappear.

The API server remembers who set each field, and an apply removes only what its own manager set and now
leaves out. Fields that another program has once PUT would stay forever. So before the first apply, its
entry in `managedFields` becomes ours; values do not change by that. The name of a manager is that of some
binary, so the entry to take is the one that owns the annotation in which the other operator kept its
records.
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
    """Makes us the manager of what an earlier operator set; `mark` is the annotation that it wrote."""

    writer: Writer
    mark: str

    def is_due(self, live: Resource) -> bool:
        """Whether the earlier operator has written an object, and we have not applied it since."""
        return self.mark in live.metadata.annotations

    async def __call__(self, live: R) -> R:
        """The object after we have become the manager of its fields: one read and at most one patch.

        Raises:
            Conflict: it has changed since it was read; the caller retries at once.
            OperatorError: the API server could not be asked.
        """
        try:
            stored = await self.writer.client.get_json(live.KIND.path(*live.key))
        except NotFound:
            return live  # the apply that follows finds that out
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
    """The managed fields with what the writer of `mark` has updated moved to what `manager` has applied.

    Others' entries stay as they are, and so do those of subresources and of other API versions.
    None means: there is nothing to move.
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
    """Whether an entry is of that operation on the object itself, in the one format that there is."""
    is_readable = entry.get("fieldsType") == "FieldsV1" and {"fieldsV1", "manager"} <= entry.keys()
    return is_readable and not entry.get("subresource") and entry.get("operation") == operation


def _owns(entry: Object, annotation: str) -> bool:
    fields: Any = entry["fieldsV1"]
    return f"f:{annotation}" in fields.get("f:metadata", {}).get("f:annotations", {})


def _union(left: Object, right: Object) -> Object:
    """All fields of two sets in the format FieldsV1.

    A field is in a set if it is a leaf, or has "." beside what is in it.
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
