"""What `dynamoctl install` and `dynamoctl images` print."""

from typing import Any

import pytest
import yaml

from dynamo_operator.crds import RESOURCES
from dynamo_operator.shared.cluster import OPTIONAL_APIS, OptionalApi
from dynamoctl.installation.checks import from_registry, images
from dynamoctl.installation.manifests import PLACEHOLDER, Choices, manifests
from dynamoctl.main import app
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Object


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []


def deployment(objects: list[Object]) -> Object:
    [found] = [each for each in objects if each["kind"] == "Deployment"]
    return found


@pytest.mark.parametrize("is_restricted", [False, True])
def test_the_namespace_stands_wherever_it_belongs(is_restricted: bool) -> None:
    found = list(manifests(Choices("team-a", is_restricted=is_restricted)))
    texts = strings(found)
    assert not [each for each in texts if PLACEHOLDER in each]
    assert ("--restrictedNamespace=team-a" in texts) == is_restricted
    assert "--webhook-namespace=team-a" in texts
    assert "team-a" == deployment(found)["metadata"]["namespace"]


def test_the_namespace_and_the_definitions_come_first() -> None:
    kinds = [each["kind"] for each in manifests(Choices("n"))]
    assert ["Namespace", *["CustomResourceDefinition"] * len(RESOURCES)] == kinds[: 1 + len(RESOURCES)]


def test_an_image_of_ones_own_is_used() -> None:
    found = deployment(list(manifests(Choices("n", "registry.example.com/op:1"))))
    [container] = found["spec"]["template"]["spec"]["containers"]
    assert "registry.example.com/op:1" == container["image"]


def test_nothing_says_that_helm_manages_it() -> None:
    for each in manifests(Choices("n")):
        assert "Helm" not in strings(each["metadata"].get("labels", {}))


def test_install_prints_documents(capsys: pytest.CaptureFixture[str]) -> None:
    app()(["install", "--print", "--namespace=a"], result_action="return_value")
    found = list(yaml.load_all(capsys.readouterr().out, Loader=yaml.CSafeLoader))
    assert list(manifests(Choices("a"))) == found


def test_what_may_be_deleted_has_neither_definitions_nor_the_namespace() -> None:
    whole = list(manifests(Choices("n")))
    alone = list(manifests(Choices("n", is_operator_only=True)))
    keeps = {"Namespace", "CustomResourceDefinition"}
    assert [each for each in whole if each["kind"] not in keeps] == alone


def test_install_without_print_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="add --print"):
        app()(["install"])


def test_images_may_come_from_another_registry() -> None:
    assert images("1.2", "mirror:5000/x")[0] == "mirror:5000/x/dynamo-operator:1.2"
    assert images("1.2")[0] == "dynamo-operator:1.2"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nvcr.io/nvidia/op:1", "r/nvidia/op:1"),
        ("localhost:5000/op", "r/op"),
        ("library/python:3", "r/library/python:3"),
        ("python:3.12-slim", "r/python:3.12-slim"),
    ],
)
def test_a_registry_takes_the_place_of_a_registry_only(image: str, expected: str) -> None:
    assert expected == from_registry(image, "r/")


def test_images_to_copy_come_with_their_new_names(capsys: pytest.CaptureFixture[str]) -> None:
    app()(["images", "--registry=mirror.example.com", "--output=pairs"], result_action="return_value")
    lines = capsys.readouterr().out.splitlines()
    pairs = [line.split(" ") for line in lines]
    assert all(from_registry(source, "mirror.example.com") == target for source, target in pairs)
    assert len(images("1")) == len(lines)


def test_images_are_copied_to_a_registry_that_is_named() -> None:
    with pytest.raises(ConfigError, match="requires --registry"):
        app()(["images", "--output=pairs"])


@pytest.mark.parametrize("is_restricted", [False, True])
@pytest.mark.parametrize("api", OPTIONAL_APIS, ids=lambda api: api.key)
def test_what_is_withheld_is_in_no_rule_of_the_operator(api: OptionalApi, is_restricted: bool) -> None:
    def groups(choices: Choices) -> set[str]:
        return {
            group
            for each in manifests(choices)
            if each["kind"] in ("Role", "ClusterRole") and "epp" not in each["metadata"]["name"]
            for rule in each["rules"]
            for group in rule.get("apiGroups", ())
        }

    theirs = {kind.group for kind in api.kinds}
    whole = groups(Choices("a", is_restricted=is_restricted))
    assert theirs <= whole
    left = groups(Choices("a", is_restricted=is_restricted, withheld=frozenset((api.key,))))
    assert whole - theirs == left


def test_withhold_is_an_option_that_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["install", "--print", "--withhold=grove", "--withhold=istio"]
    app()(arguments, result_action="return_value")
    text = capsys.readouterr().out
    assert "grove.io" not in text
    assert "virtualservices" not in text
    assert "leaderworkersets" in text
