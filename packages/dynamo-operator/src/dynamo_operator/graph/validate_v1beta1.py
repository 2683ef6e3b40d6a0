"""The rules of the fields that only v1beta1 has. They read the object as it was written.

All other rules read it in v1alpha1; `shared/written.py` translates their problems.
"""

from collections.abc import Iterator
from typing import Final

from dynamo_operator.graph.validate_grove import NOT_ON_GROVE
from dynamo_operator.shared.inert import INERT_COMPONENT, inside, written_inert_warnings
from dynamo_operator.shared.problems import Problem, ProblemKind
from kube_runtime.types.meta import Fields, Object

_FORCE: Final = "experimental.grove.forceScalingGroup"


def written_problems(document: Object, *, may_be_on_grove: bool) -> Iterator[Problem]:
    """Problems of a graph or component in v1beta1."""
    for path, component in _components(document):
        yield from _sidecar_problems(component, path)
        if inside(component, _FORCE) and not may_be_on_grove:
            yield Problem(f"{path}.{_FORCE}", NOT_ON_GROVE, ProblemKind.FORBIDDEN)


def written_update_problems(old: Object, new: Object) -> Iterator[Problem]:
    """Refuse changes of what replaces pods by others."""
    before = {component.get("name"): component for _, component in _components(old)}
    for path, component in _components(new):
        earlier = before.get(component.get("name"))
        if earlier is not None and bool(inside(earlier, _FORCE)) != bool(inside(component, _FORCE)):
            message = f"cannot be toggled after creation; delete and recreate the {new['kind']} to change it"
            yield Problem(f"{path}.{_FORCE}", message, ProblemKind.FORBIDDEN)


def written_warnings(document: Object) -> Iterator[Problem]:
    """Warn of fields that the operator does not act on."""
    for path, component in _components(document):
        yield from written_inert_warnings(component, INERT_COMPONENT, path)


def _sidecar_problems(component: Fields, path: str) -> Iterator[Problem]:
    sidecar, template = component.get("frontendSidecar"), component.get("podTemplate")
    if sidecar is None:
        return
    if template is None:
        at = f"{path}.podTemplate.spec.containers"
        yield Problem(at, "is required when frontendSidecar is set", ProblemKind.REQUIRED)
    elif not sidecar:
        yield Problem(f"{path}.frontendSidecar", "must not be empty")
    elif sidecar not in [one.get("name") for one in inside(template, "spec.containers") or ()]:
        yield Problem(f"{path}.frontendSidecar", "must match a podTemplate.spec.containers name")


def _components(document: Object) -> Iterator[tuple[str, Fields]]:
    """The components of a graph with their paths, or the one that the document is."""
    spec = document.get("spec") or {}
    if document.get("kind") == "DynamoComponentDeployment":
        yield "spec", spec
        return
    for index, component in enumerate(spec.get("components") or ()):
        yield f"spec.components[{index}]", component
