"""The schemas of v1beta1 accept and refuse what they should, without an API server."""

import pytest

from dynamo_graphs.schema import resource_problems
from dynamo_operator.crds import LATER_RESOURCES, filled, whole_schema
from kube_runtime.types.meta import Object
from specs.v1beta1 import CASES, DEFAULTED

RESOURCES = {resource.KIND.name: resource for resource in LATER_RESOURCES}
CHANGES = [name for name, case in CASES.items() if case.before is not None or "on create" in case.refused]
"""Of these only an API server knows, as they depend on the state before."""


@pytest.mark.parametrize("name", [name for name in CASES if name not in CHANGES])
def test_a_document_is_accepted_or_refused_for_the_right_reason(name: str) -> None:
    case = CASES[name]
    problems = "\n".join(map(str, resource_problems(RESOURCES[case.kind], case.document)))
    assert bool(case.refused) == bool(problems), problems
    assert case.refused in problems


@pytest.mark.parametrize("name", DEFAULTED)
def test_defaults_are_filled_in(name: str) -> None:
    kind, spec, stored = DEFAULTED[name]
    document: Object = {"spec": spec}
    assert {"spec": stored} == filled(document, whole_schema(RESOURCES[kind]))
