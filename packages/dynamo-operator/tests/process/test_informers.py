"""Each object that we write is brought by one watch of its kind, and no label of a user hides it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from conformance.recordings import documents
from dynamo_graphs.offline import graph_tree
from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.scope import informers, unselected
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Metadata, Object, Resource, Selector

TESTS = Path(__file__).parents[4] / "tests"
GOLDEN = sorted((TESTS / "golden/cases").glob("*/objects.yaml"))
SETTINGS = RenderSettings()
SELECTIONS = [(each.type_, each.selector) for each in informers(SETTINGS)]
FOREIGN: Object = {"metadata": {"name": "theirs", "labels": {labels.APP_MANAGED_BY: "Helm"}}}


def covers(selection: Selector, each: Object) -> bool:
    """Whether a watch with that selection brings an object with these labels."""
    metadata = msgspec.convert({"labels": each["metadata"].get("labels", {})}, Metadata)
    return selection.covers(Resource(metadata), is_watched=True)


def watches_of(each: Object) -> list[type[Resource]]:
    """The types whose watch brings the object."""
    kind = each["kind"]
    return [t for t, found in SELECTIONS if t.KIND.name == kind and covers(found, each)]


def test_there_are_golden_files() -> None:
    assert GOLDEN


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_all_that_we_write_is_watched_once(path: Path) -> None:
    objects = [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each]
    assert objects
    wrong = {(each["kind"], each["metadata"]["name"]): len(watches_of(each)) for each in objects}
    assert {} == {key: count for key, count in wrong.items() if count != 1}


def test_no_label_of_a_user_hides_an_object() -> None:
    hostile: dict[str, Any] = {
        labels.COMPONENT: "theirs",
        labels.APP_MANAGED_BY: "Helm",
        labels.BASE_MODEL_HASH: "0",
        labels.INSTANCE: "x",
    }
    service = {"componentType": "worker", "labels": hostile, "modelRef": {"name": "m"}, "replicas": 1}
    body = {
        "metadata": {"name": "chat", "namespace": "n"},
        "spec": {"labels": hostile, "services": {"Worker": service}},
    }
    graph = msgspec.convert(body, DynamoGraphDeployment)
    for each in graph_tree(graph, Facts(), SETTINGS):
        assert 1 == len(watches_of(each)), each


@pytest.mark.parametrize(
    "kind",
    [
        *("Deployment", "Service", "ServiceAccount", "Role", "RoleBinding", "Ingress"),
        *("PodDisruptionBudget", "ConfigMap", "Pod", "EndpointSlice", "StatefulSet"),
        *("LeaderWorkerSet", "PodGroup", "InferencePool", "VirtualService"),
    ],
)
def test_what_others_run_is_not_watched(kind: str) -> None:
    assert [] == watches_of({**FOREIGN, "kind": kind})


def test_what_the_go_operator_made_is_watched_or_looked_for() -> None:
    looked_for = [(type_.KIND.name, selector) for type_, selector in unselected(SETTINGS).items()]
    kinds = {name for name, _ in looked_for}
    lost, unmarked = [], set()
    for path in sorted((TESTS / "conformance/cases").glob("*/*.yaml")):
        if path.name.startswith(("none", "grove", "lws", "flags")):
            for each in recorded(path):
                if each["kind"] in kinds and not watches_of(each):
                    unmarked.add(each["kind"])
                    if not any(k == each["kind"] and covers(s, each) for k, s in looked_for):
                        lost.append((path, each["metadata"]["name"]))
    assert ([], {"Ingress", "Service"}) == (lost, unmarked)


def recorded(path: Path) -> list[Object]:
    """The objects of a recording that one of our kinds controls."""
    [stage, *_] = documents(path)
    found: list[Object] = stage["objects"]
    return [each for each in found if each["metadata"].get("ownerReferences")]


def test_a_restricted_operator_looks_in_its_namespace() -> None:
    chosen = msgspec.structs.replace(SETTINGS, restricted_namespace="mine")
    assert {"mine"} == {each.namespace for each in unselected(chosen).values()}


@pytest.mark.parametrize("with_legacy_kinds", [False, True])
def test_a_restricted_operator_watches_nothing_of_other_namespaces(with_legacy_kinds: bool) -> None:
    chosen = msgspec.structs.replace(SETTINGS, restricted_namespace="mine")
    elsewhere = {
        informer.type_
        for informer in informers(chosen, with_legacy_kinds=with_legacy_kinds)
        if informer.type_.KIND.namespaced and informer.selector.namespace != "mine"
    }
    assert set() == elsewhere
