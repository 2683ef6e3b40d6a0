"""The engines of the builders."""

from typing import get_args

from dynamo_graphs.engines import ENGINES
from dynamo_graphs.objects import Backend
from dynamo_operator.component.api import FRAMEWORKS


def test_each_backend_of_the_builders_has_its_flags() -> None:
    assert set(get_args(Backend)) == set(ENGINES) <= set(FRAMEWORKS)
