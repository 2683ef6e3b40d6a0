"""What `dynamoctl install` and `dynamoctl install images` print."""

from typing import Any

import pytest
import yaml

from dynamo_operator import version
from dynamo_operator.crds import RESOURCES
from dynamo_operator.shared.cluster import OPTIONAL_APIS, OptionalApi
from dynamoctl.installation.checks import from_registry, images
from dynamoctl.installation.manifests import PLACEHOLDER, Choices, manifests
from dynamoctl.main import app
from kube_runtime.errors import ConfigError


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("is_restricted", [False, True])
def test_the_namespace_stands_wherever_it_belongs(is_restricted: bool) -> None:
    found = list(manifests(Choices("team-a", "registry.example.com/op:1", is_restricted=is_restricted)))
    texts = strings(found)
    assert "Helm" not in strings([each["metadata"].get("labels", {}) for each in found])
    assert not [each for each in texts if PLACEHOLDER in each]
    assert ("--restrictedNamespace=team-a" in texts) == is_restricted
    assert "--webhook-namespace=team-a" in texts
    [deployment] = [each for each in found if each["kind"] == "Deployment"]
    assert "team-a" == deployment["metadata"]["namespace"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert "registry.example.com/op:1" == container["image"]


def test_install_prints_documents_and_withhold_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["install", "--print", "--namespace=a", "--withhold=grove", "--withhold=istio"]
    app()(arguments, result_action="return_value")
    found = list(yaml.load_all(capsys.readouterr().out, Loader=yaml.CSafeLoader))
    assert list(manifests(Choices("a", withheld=frozenset(("grove", "istio"))))) == found


def test_the_namespace_and_the_definitions_come_first_and_may_be_left_out() -> None:
    whole = list(manifests(Choices("n")))
    first = ["Namespace", *["CustomResourceDefinition"] * len(RESOURCES)]
    assert first == [each["kind"] for each in whole[: len(first)]]
    assert whole[len(first) :] == list(manifests(Choices("n", is_operator_only=True)))


@pytest.mark.parametrize(
    ("choices", "served", "stored"),
    [
        (Choices("n"), ["v1alpha1", "v1beta1"], "v1beta1"),
        (Choices("n", stored="v1alpha1"), ["v1alpha1", "v1beta1"], "v1alpha1"),
        (Choices("n", is_restricted=True), ["v1alpha1"], "v1alpha1"),
        (Choices("n", is_restricted=True, stored="v1beta1"), ["v1beta1"], "v1beta1"),
    ],
    ids=str,
)
def test_an_installation_with_webhooks_serves_both_versions(
    choices: Choices, served: list[str], stored: str
) -> None:
    (graphs,) = (
        body["spec"]
        for body in manifests(choices)
        if body["metadata"]["name"] == "dynamographdeployments.nvidia.com"
    )
    assert served == [version["name"] for version in graphs["versions"]]
    assert [stored] == [version["name"] for version in graphs["versions"] if version["storage"]]
    assert (len(served) > 1) == ("conversion" in graphs)
    if len(served) > 1:
        service = graphs["conversion"]["webhook"]["clientConfig"]["service"]
        assert ("n", "dynamo-platform-dynamo-operator-webhook-service") == (
            service["namespace"],
            service["name"],
        )


@pytest.mark.parametrize(
    ("line", "message"),
    [("install", "add --print"), ("install images --output=pairs", "requires --registry")],
)
def test_a_command_without_what_it_needs_says_what_to_add(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        app()(line.split())


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
    app()(
        ["install", "images", "--registry=mirror.example.com", "--output=pairs"], result_action="return_value"
    )
    lines = capsys.readouterr().out.splitlines()
    pairs = [line.split(" ") for line in lines]
    assert [f"dynamo-operator:{version()}", f"mirror.example.com/dynamo-operator:{version()}"] == pairs[0]
    assert all(from_registry(source, "mirror.example.com") == target for source, target in pairs)
    assert len(images("1")) == len(lines)


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
