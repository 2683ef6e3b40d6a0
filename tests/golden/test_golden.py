"""Everything that comes of a graph, held byte by byte: an operator upgrade must roll no pods."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from dynamo_graphs.offline import component_tree, graph_tree
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.validate import component_problems
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import with_provider
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import Problem
from dynamo_operator.shared.seen import seen
from dynamo_operator.versions.conversion import convert
from golden.conftest import Golden
from golden_yaml import PlainDumper
from kube_runtime.types.meta import Object
from specs.invariants import assert_groups_know_their_place

CASES = sorted(Path(__file__).parent.joinpath("cases").iterdir())


def context(case: Path) -> tuple[Facts, RenderSettings]:
    """The cluster and the settings of a case; both are defaults unless it has a file for them."""

    def value(name: str, type_: Any) -> Any:
        path = case / name
        return msgspec.convert(yaml.safe_load(path.read_text("utf-8")) if path.exists() else {}, type_)

    facts = value("facts.yaml", dict[str, Any])
    secrets = {host: tuple(names) for host, names in facts.get("pullSecrets", {}).items()}
    found = Facts(
        secrets,
        facts.get("componentServiceAccount", ""),
        grove_served=facts.get("groveServed", False),
        kai_served=facts.get("kaiServed", False),
        istio_served=facts.get("istioServed", False),
    )
    return found, value("settings.yaml", RenderSettings)


def rendered(case: Path, read: Callable[[Object], Object] = lambda document: document) -> tuple[Object, ...]:
    """What comes of the documents of a case, as they are read."""
    facts, settings = context(case)
    objects: list[Object] = []
    problems: list[Problem] = []
    for document in map(read, filter(None, yaml.safe_load_all((case / "in.yaml").read_text("utf-8")))):
        if document["kind"] == DynamoGraphDeployment.KIND.name:
            graph = msgspec.convert(document, DynamoGraphDeployment)
            objects += graph_tree(graph, facts, settings)
            problems += graph_problems(with_provider(graph, facts), settings)
        else:
            component = msgspec.convert(document, DynamoComponentDeployment)
            objects += component_tree(component, facts, settings)
            problems += component_problems(component, settings)
    assert [] == problems
    return tuple(objects)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_graph_renders_to_its_golden_file(case: Path, golden: Golden) -> None:
    text = yaml.dump_all(rendered(case), Dumper=PlainDumper, sort_keys=False, width=100)
    golden.check(case / "objects.yaml", text)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_the_groups_of_a_golden_case_know_their_place(case: Path) -> None:
    assert_groups_know_their_place(rendered(case))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_graph_that_is_stored_in_v1beta1_renders_the_same(case: Path) -> None:
    def stored(document: Object) -> Object:
        return seen(convert(document, "nvidia.com/v1beta1"))

    assert rendered(case) == rendered(case, stored)
