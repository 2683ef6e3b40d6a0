"""The other kinds and the engines of the builders."""

from typing import get_args

from dynamo_graphs import ApiObject, Component, Graph, Model, Request, ScalingAdapter
from dynamo_graphs.engines import ENGINES
from dynamo_graphs.objects import Backend
from dynamo_operator.component.api import NAMES
from dynamo_operator.crds import RESOURCES
from dynamo_operator.models.api import DynamoWorkerMetadata

KINDS: tuple[type[ApiObject], ...] = (Graph, Component, Request, ScalingAdapter, Model)


WRITTEN_BY_THE_RUNTIME = (DynamoWorkerMetadata,)
"""Kinds that no user writes."""


def test_each_backend_of_the_builders_has_its_flags() -> None:
    assert set(get_args(Backend)) == set(ENGINES) <= set(NAMES)


def test_each_kind_that_users_write_is_exported() -> None:
    assert set(RESOURCES) - set(WRITTEN_BY_THE_RUNTIME) == {each.TYPE for each in KINDS}
