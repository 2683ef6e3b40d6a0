"""Components, models, requests and scaling adapters: what each refuses."""

from collections.abc import Callable

import pytest

from dynamo_graphs import Component, InvalidObject, Model, Request, ScalingAdapter


@pytest.mark.parametrize(
    ("path", "make"),
    [
        ("spec.source", lambda: Model("m", model_name="a", base_model_name="b", model_type="lora")),
        ("spec.replicas", lambda: ScalingAdapter("a", graph="g", service="s", replicas=-1)),
        ("spec.replicas", lambda: Component("c", replicas=-1)),
        ("spec.profilingConfig", lambda: Request("r", model="m")),
    ],
)
def test_a_mistake_is_an_error_at_once_with_its_path(path: str, make: Callable[[], object]) -> None:
    with pytest.raises(InvalidObject) as caught:
        make()
    assert [path] == [problem.path for problem in caught.value.problems]
