"""Whether two pod templates are the same, although one was read back from the API server.

Unlike in `drift.py`, an addition counts: a field that only one side has must be a default of the API server.
"""

from kube_runtime.apply.merge_schema import FieldSchema, is_omitted_when_zero, type_field
from kube_runtime.kind import Object
from kube_runtime.quantity import is_same_amount

_EMPTY: tuple[object, ...] = (None, {}, [])
_LATEST = ("", "latest")


def is_same_template(left: Object, right: Object, *, by_amount: bool) -> bool:
    """Whether two pod templates are equal, apart from defaults of the API server and empty fields.

    `by_amount`: two spellings of one quantity are equal. Not so in a custom resource, which keeps the text,
    so that its controller may see a change.
    """
    return _same(left, right, type_field("PodTemplateSpec"), by_amount=by_amount)


def _same(left: object, right: object, field: FieldSchema, *, by_amount: bool) -> bool:
    if left in _EMPTY and right in _EMPTY:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(
            _same(
                _filled(name, left, field),
                _filled(name, right, field),
                field.child(name),
                by_amount=by_amount,
            )
            for name in left.keys() | right.keys()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            _same(ours, theirs, field.items, by_amount=by_amount)
            for ours, theirs in zip(left, right, strict=True)
        )
    if type(left) is type(right) and left == right:
        return True
    return by_amount and field.is_quantity and is_same_amount(left, right)


def _filled(name: str, parent: Object, field: FieldSchema) -> object:
    """The value of a field, or its default; None if it has none."""
    value = parent.get(name)
    if value in _EMPTY or (not value and field.is_known and is_omitted_when_zero(name)):
        return _default(name, parent, field)
    return value


def _default(name: str, parent: Object, field: FieldSchema) -> object:
    match field.type, name:
        case "Container", "imagePullPolicy":
            return "Always" if _tag(str(parent.get("image", ""))) in _LATEST else "IfNotPresent"
        case "PodSpec", "serviceAccount":  # the old name of the same field
            return parent.get("serviceAccountName")
    return field.default(name)


def _tag(image: str) -> str:
    """The tag of an image, "" if it has none, "@" if it has a digest."""
    if "@" in image:
        return "@"
    return image.rpartition("/")[2].partition(":")[2]
