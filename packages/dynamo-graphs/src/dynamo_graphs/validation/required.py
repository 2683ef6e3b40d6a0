"""Lists in a user's pod spec that may not be empty.

An empty list counts as not given when objects are rendered. Where the schema wants the list, the API server
would then miss a field that the user did write, so that is reported here.
"""

from collections.abc import Iterator, Mapping

from dynamo_graphs.validation import Problem, ProblemKind
from kube_runtime.crd.embedded import embedded
from kube_runtime.kind import Fields, Object


def required_list_problems(pod: Fields, path: str) -> Iterator[Problem]:
    """One problem for each empty list of which Kubernetes wants at least one entry."""
    yield from _problems(pod, embedded("ExtraPodSpec"), path)


def _problems(value: object, schema: Object, path: str) -> Iterator[Problem]:
    if not schema:
        return  # below a key of the user's own nothing is required, and such a key may be as long as it likes
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    required, properties = schema.get("required", ()), schema.get("properties", {})
    for name, inner in value.items():
        at = f"{path}.{name}"
        if name in required and isinstance(inner, list | tuple) and not inner:
            yield Problem(at, "expected at least one entry", ProblemKind.REQUIRED)
        yield from _problems(inner, properties.get(name, {}), at)
