"""The entries of `metadata.managedFields`, and moving them from one manager to another.

An apply removes only the fields that its own manager set before. Fields of another manager would stay
forever, so its entry becomes part of that of the applier first, as client-go's `csaupgrade` does; no value
changes.
"""

from collections.abc import Sequence

from kube_runtime.types.meta import Object


def with_manager(entries: Sequence[Object], *, mark: str, manager: str) -> list[Object] | None:
    """Move the fields that the writer of the annotation `mark` updated to those that `manager` applied.

    None means: nothing to move.
    """
    annotation = f"f:{mark}"
    marked = [
        entry
        for entry in entries
        if is_of("Update", entry)
        and annotation in entry["fieldsV1"].get("f:metadata", {}).get("f:annotations", {})
    ]
    earlier = {entry["manager"] for entry in marked}
    others = [
        entry
        for entry in entries
        if is_of("Update", entry) and entry["manager"] in earlier and entry not in marked
    ]
    return moved(entries, [*marked, *others], manager)


def moved(entries: Sequence[Object], theirs: Sequence[Object], manager: str) -> list[Object] | None:
    """Move the fields of `theirs`, some of the entries, to those that `manager` applied.

    Entries of others and of other API versions stay as they are. None means: nothing to move.
    """
    ours = [entry for entry in entries if is_of("Apply", entry) and entry["manager"] == manager]
    if not theirs:
        return None
    version = (ours or theirs)[0]["apiVersion"]
    taken = [entry for entry in theirs if entry["apiVersion"] == version]
    if not taken:
        return None
    fields: Object = {}
    for entry in (*ours, *taken):
        fields = union(fields, entry["fieldsV1"])
    latest = max((*ours, *taken), key=lambda entry: entry.get("time") or "")
    merged = {**latest, "manager": manager, "operation": "Apply", "fieldsV1": fields}
    return [*(entry for entry in entries if entry not in ours and entry not in taken), merged]


def is_of(operation: str, entry: Object) -> bool:
    """Whether an entry is of that operation on the object itself, and in the format of `union`."""
    is_readable = entry.get("fieldsType") == "FieldsV1" and {"fieldsV1", "manager"} <= entry.keys()
    return is_readable and not entry.get("subresource") and entry.get("operation") == operation


def union(left: Object, right: Object) -> Object:
    """The union of two sets of fields in the format FieldsV1."""
    # A field with members is itself in a set if it has the member ".".
    result = dict(left)
    for name, theirs in right.items():
        ours = left.get(name)
        if ours is None:
            result[name] = theirs
        elif not ours or not theirs:
            inside = ours or theirs
            result[name] = {".": {}, **inside} if inside else {}
        else:
            result[name] = union(ours, theirs)
    return result
