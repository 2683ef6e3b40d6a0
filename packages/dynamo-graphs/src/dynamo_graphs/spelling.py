"""Names of fields: Python's snake case to the case of the API.

The schema says which keys name fields. Keys of labels, of resources and of free-form JSON stay as they are.
"""

import re
from functools import cache
from typing import Any

from dynamo_operator.shared.problems import Problem, ProblemKind, Suggestions
from kube_runtime.types.meta import Object

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def snake(name: str) -> str:
    """A name of the API in snake case: `output_pvc` of `outputPVC`."""
    return _CAPITAL.sub("_", name).lower()


def in_api_case(value: object, schema: Object, path: str, wrong: list[Problem]) -> Any:
    """A JSON value with the names of the API; unknown fields are left out and added to `wrong`."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [in_api_case(item, items, f"{path}[{at}]", wrong) for at, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    fields = schema.get("properties")
    if fields is None:
        inner = schema.get("additionalProperties", {})
        return {key: in_api_case(item, inner, f"{path}.{key}", wrong) for key, item in value.items()}
    names: dict[str, str] = {snake(field): field for field in fields}
    result: Object = {}
    for key, item in value.items():
        name: Any = key if key in fields else names.get(key, key)
        where = f"{path}.{key}"
        if name not in fields and not schema.get("x-kubernetes-preserve-unknown-fields"):
            wrong.append(Problem(where, f"unknown field{_hint(key, schema)}", ProblemKind.UNKNOWN_FIELD))
        elif name in result:
            wrong.append(Problem(where, f'duplicate of "{name}"', ProblemKind.DUPLICATE))
        else:
            result[name] = in_api_case(item, fields.get(name, {}), f"{path}.{name}", wrong)
    return result


def _hint(key: str, schema: Object) -> str:
    """A hint at the field that was meant, in the case of the key."""
    from dynamo_graphs.schema import unknown_field_hint

    head, *words = key.split("_")
    hint = unknown_field_hint(head + "".join(map(str.capitalize, words)), schema, Suggestions())
    return hint if key != key.lower() else snake(hint)
