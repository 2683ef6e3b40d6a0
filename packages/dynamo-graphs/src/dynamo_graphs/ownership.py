"""Which manager owns which fields of an object, and what an apply takes over.

A person uses kubectl and dynamoctl in turn: an apply overwrites what either has set, and what kubectl has
applied, created or replaced as a whole becomes ours first, so that fields that leave the file leave the
object. Controllers and GitOps tools would write their values again, so their fields are a conflict.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from http import HTTPStatus
from itertools import groupby
from typing import Literal

import msgspec

from dynamo_graphs.ages import some_of
from dynamo_graphs.reader import MANAGER, Reading, retry_on_conflict
from dynamo_operator.features.scaling.api import FIELD_MANAGER as SCALING
from kube_runtime.apply.managed_fields import is_of, moved, union
from kube_runtime.client.client import APPLY_PATCH, MERGE_PATCH
from kube_runtime.errors import Conflict
from kube_runtime.types.meta import Fields, Kind, Object, from_json, key_of
from kube_runtime.wire import UNREADABLE

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl's client-side apply keeps the file, to find out what has left it."""

_WHOLE = {
    "kubectl-client-side-apply": "Update",
    "kubectl-create": "Update",
    "kubectl-replace": "Update",
    "kubectl": "Apply",  # kubectl apply --server-side
    "kubectl-last-applied": "Apply",  # owns the annotation after a switch to --server-side
}
"""kubectl's names when it writes a whole file, each with its operation.

Under its other names, such as `kubectl-edit` or `kubectl-label`, it sets single fields that no file names.
"""

_GITOPS = re.compile("argo|flux|kustomize|helm|fleet|rancher|kapp|config-?sync|terraform|pulumi|crossplane")
_AUTOSCALERS = (SCALING, "kube-controller-manager", "keda-operator")
_SERVER_METADATA = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp")


@dataclass(frozen=True, slots=True, order=True)
class OwnedField:
    """A field, and a manager that owns it."""

    manager: str
    path: str

    @property
    def is_personal(self) -> bool:
        """Whether a person set it with kubectl or dynamoctl; kubectl's own record counts, too."""
        return self.path.endswith(LAST_APPLIED) or is_person(self.manager)


def is_person(manager: str) -> bool:
    """Whether a field manager is what a person types: dynamoctl, kubectl or one of its plugins."""
    return manager in (MANAGER, "kubectl") or manager.startswith("kubectl-")


@dataclass(frozen=True, slots=True)
class Planned:
    """An object before an apply, None without one, and as it would be.

    `overwritten` are the fields that change and that other managers own.
    """

    live: Object | None
    after: Object
    overwritten: tuple[OwnedField, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """An object after an apply, and the effect in kubectl's words."""

    verb: Literal["created", "configured", "unchanged"]
    body: Object


async def planned(reading: Reading, kind: Kind, body: Object) -> Planned:
    """What an apply that ignores conflicts would make of an object; writes nothing. Raises: ApiError."""
    live = await reading.raw(kind, key_of(body))
    desired = with_last_applied(body, live)
    overwritten: tuple[OwnedField, ...] = ()
    try:
        after = await _applied(reading, kind, desired, is_dry=True, force=False)
    except Conflict as error:
        owned = owned_fields(error)
        if not owned:
            raise
        overwritten = tuple(field for field in owned if not field.path.endswith(LAST_APPLIED))
        after = await _applied(reading, kind, desired, is_dry=True, force=True)
    if live is None:
        return Planned(None, after, overwritten)
    # In the apply itself, these fields leave because their ownership moves before. A dry run cannot move it.
    left = without_left_out(after, live)
    if left != after:
        patch = merge_patch(comparable(live), comparable(left))
        after = await reading.patched(kind, key_of(body), patch, MERGE_PATCH, is_dry=True)
    return Planned(live, after, overwritten)


def ensure_no_conflict(plan: Planned) -> None:
    """Check that an apply would overwrite only what people have set. Raises: Conflict."""
    if text := conflict_text(plan.overwritten):
        raise Conflict(HTTPStatus.CONFLICT, "Conflict", f"{plan.after['kind']} {key_of(plan.after)}: {text}")


async def applied(reading: Reading, kind: Kind, body: Object, *, force: bool) -> Applied:
    """Apply an object.

    Raises:
        Conflict: a controller or a GitOps tool owns a field that would change, and `force` is not set.
        ApiError: it is refused.
    """
    return await retry_on_conflict(lambda: _applied_once(reading, kind, body, force=force), ensure_personal)


async def _applied_once(reading: Reading, kind: Kind, body: Object, *, force: bool) -> Applied:
    key = key_of(body)
    live = await reading.raw(kind, key)
    if live is None:
        return Applied("created", await _applied(reading, kind, body, is_dry=False, force=force))
    desired = with_last_applied(body, live)
    version = live["metadata"]["resourceVersion"]
    overwrites = force
    if not force:
        try:
            await _applied(reading, kind, desired, is_dry=True, force=False)
        except Conflict as error:
            ensure_personal(error)
            overwrites = True
    if (entries := taken_over(live)) is not None:
        patch = {"metadata": {"resourceVersion": version, "managedFields": entries}}
        taken = await reading.patched(kind, key, patch, MERGE_PATCH, is_dry=False)
        version = taken["metadata"]["resourceVersion"]
    if overwrites and not force:  # only what was looked at: another manager may have come since
        desired = {**desired, "metadata": {**desired["metadata"], "resourceVersion": version}}
    after = await _applied(reading, kind, desired, is_dry=False, force=overwrites)
    return Applied("unchanged" if comparable(live) == comparable(after) else "configured", after)


async def _applied(reading: Reading, kind: Kind, body: Object, *, is_dry: bool, force: bool) -> Object:
    how = {"force": "true" if force else "false"}
    return await reading.patched(kind, key_of(body), body, APPLY_PATCH, is_dry=is_dry, **how)


def owned_fields(error: Conflict) -> tuple[OwnedField, ...]:
    """The fields that a conflict is about; () for one that is about versions."""
    causes: Sequence[Mapping[str, str]] = (error.details or {}).get("causes") or ()
    fields = set()
    for cause in causes:
        if cause.get("reason") == "FieldManagerConflict":
            name = re.match(r'[^"]*+"((?:[^"\\]|\\.)*+)"', cause.get("message", ""))
            manager = name.group(1) if name else "another manager"
            fields.add(OwnedField(manager, cause.get("field", "").lstrip(".")))
    return tuple(sorted(fields))


def ensure_personal(error: Conflict) -> None:
    """Raise a conflict again, in words, if fields in it are of a controller or a GitOps tool."""
    if text := conflict_text(owned_fields(error)):
        error.message = text
        raise error


def conflict_text(overwritten: Iterable[OwnedField]) -> str:
    """Which controllers and GitOps tools own which fields, and what to do about it; "" if none does."""
    foreign = _by_manager(owned for owned in overwritten if not owned.is_personal)
    if not foreign:
        return ""
    texts = (f"{manager} owns {some_of(paths, ', ')} ({_advice(manager)})" for manager, paths in foreign)
    return f"conflict: {'; '.join(texts)}; --force-conflicts, or force=True in Python, overwrites it"


def overwriting(overwritten: Iterable[OwnedField]) -> Iterator[str]:
    """A line for each manager whose fields an apply overwrites, or may not overwrite."""
    for manager, paths in _by_manager(overwritten):
        if is_person(manager):
            yield f"overwrites what {manager} has set: {some_of(paths)}"
        else:
            yield f"conflict with {manager}: {some_of(paths)} ({_advice(manager)}, or use --force-conflicts)"


def _by_manager(owned: Iterable[OwnedField]) -> list[tuple[str, list[str]]]:
    groups = groupby(sorted(owned), key=lambda field: field.manager)
    return [(manager, [field.path for field in group]) for manager, group in groups]


def _advice(manager: str) -> str:
    if _GITOPS.search(manager):
        return "change it in the Git repository"
    if manager in _AUTOSCALERS:
        return "it sets the replicas: leave them out of the file"
    return "leave it out of the file"


def taken_over(live: Object) -> list[Object] | None:
    """The `managedFields` of an object after ours have taken in those of whole files; None: as they are."""
    entries: list[Object] = live["metadata"].get("managedFields", [])
    return moved(entries, [entry for entry in entries if _is_whole(entry)], MANAGER)


def _is_whole(entry: Object) -> bool:
    operation = _WHOLE.get(entry.get("manager", ""))
    return operation is not None and is_of(operation, entry)


def with_last_applied(body: Object, live: Object | None) -> Object:
    """The object with kubectl's own record of the file, up to date, if a person's kubectl keeps one.

    With it, a later client-side apply removes what has left the file, as if kubectl had made this one.
    """
    metadata = (live or {}).get("metadata", {})
    record = metadata.get("annotations", {}).get(LAST_APPLIED)
    owners = [
        entry["manager"]
        for entry in metadata.get("managedFields", ())
        if f"f:{LAST_APPLIED}" in _inside(entry.get("fieldsV1"), "f:metadata", "f:annotations")
    ]
    if record is None or not any(map(is_person, owners)):
        return body
    notes = {k: v for k, v in (body["metadata"].get("annotations") or {}).items() if k != LAST_APPLIED}
    file = {**body, "metadata": {**body["metadata"], "annotations": notes}}
    try:
        is_same = from_json(record, Object) == file
    except UNREADABLE:
        is_same = False
    text = record if is_same else f"{msgspec.json.encode(file, order='sorted').decode()}\n"
    return {**file, "metadata": {**file["metadata"], "annotations": {**notes, LAST_APPLIED: text}}}


def _inside(fields: object, *names: str) -> Object:
    for name in names:
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields if isinstance(fields, dict) else {}


def without_left_out(after: Object, live: Object) -> Object:
    """`after`, of a dry run, without what whole files have set and no manager sets any more."""
    entries = live["metadata"].get("managedFields", ())
    theirs = [entry["fieldsV1"] for entry in entries if _is_whole(entry)]
    if not theirs:
        return after
    others = [entry for entry in after["metadata"].get("managedFields", ()) if not _is_whole(entry)]
    kept: Object = reduce(union, (entry.get("fieldsV1") or {} for entry in others), {})
    return dict(_pruned(after, reduce(union, theirs), kept))


def _pruned(value: Fields, dropped: Object, kept: Object) -> Fields:
    """The value without the fields in the set `dropped` that are not in `kept`."""
    result = dict(value)
    for name, inside in dropped.items():
        field = name.removeprefix("f:")
        if not name.startswith("f:") or field not in result:
            continue
        if name not in kept and (not inside or "." in inside):
            del result[field]
            continue
        present = result[field]
        if isinstance(present, dict):
            result[field] = _pruned(present, inside, kept.get(name, {}))
        elif isinstance(present, list):
            result[field] = _pruned_list(present, inside, kept.get(name, {}))
        if name not in kept and present and not result[field]:
            del result[field]
    return result


def _pruned_list(items: Sequence[object], dropped: Object, kept: Object) -> list[object]:
    result = list(items)
    for name, inside in dropped.items():
        index = _index(result, name)
        if index is None:
            continue
        item = result[index]
        if name not in kept:
            del result[index]
        elif isinstance(item, dict):
            result[index] = _pruned(item, inside, kept[name])
    return result


def _index(items: Sequence[object], name: str) -> int | None:
    """Where the list has the entry that `k:{…}` or `v:…` of FieldsV1 names."""
    kind, _, text = name.partition(":")
    if kind not in ("k", "v"):
        return None
    wanted = msgspec.json.decode(text)
    for index, item in enumerate(items):
        if kind == "v" and item == wanted:
            return index
        if kind == "k" and isinstance(item, dict) and wanted.items() <= item.items():
            return index
    return None


def comparable(body: Object | None) -> Object:
    """An object without its status and the fields that the API server and kubectl write; {} for None."""
    if body is None:
        return {}
    metadata = {k: v for k, v in body["metadata"].items() if k not in _SERVER_METADATA}
    notes = {k: v for k, v in metadata.pop("annotations", {}).items() if k != LAST_APPLIED}
    if notes:
        metadata["annotations"] = notes
    rest = {k: v for k, v in body.items() if k not in ("metadata", "status")}
    return {"apiVersion": rest.pop("apiVersion"), "kind": rest.pop("kind"), "metadata": metadata} | rest


def merge_patch(before: Object, after: Object) -> Object:
    """The JSON merge patch (RFC 7386) from `before` to `after`; {} if they are equal."""
    patch: Object = {name: None for name in before if name not in after}
    for name, value in after.items():
        present = before.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            if part := merge_patch(present, value):
                patch[name] = part
        elif name not in before or present != value:
            patch[name] = value
    return patch
