"""Each rule of the older generation, with its path and its words."""

from typing import Any

import msgspec
import pytest

from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment, DynamoNimRequest
from dynamo_legacy.build.source import STORAGE_NAMESPACE
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.validation import (
    deployment_problems,
    deployment_warnings,
    nim_problems,
    nim_warnings,
    request_problems,
)
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import MOST_PROBLEMS

NAME = '(expected at most 63 lower-case letters, digits and "-", with a letter or digit at both ends)'
IGNORED = {
    "runMode": {"standalone": True},
    "externalServices": {"Worker": {}},
    "monitorExporter": {"enabled": True},
    "annotations": {"yatai.ai/enable-debug-mode": "true"},
}
WARNED = [
    "runMode: has no effect: no process has ever read it",
    "externalServices: has no effect: no process has ever read it",
    "monitorExporter: has no effect: the image of this side container is gone",
    "annotations[yatai.ai/enable-debug-mode]: has no effect: what it switched is gone",
]


def deployment(services: Any = None, /, name: str = "disagg", **spec: Any) -> DynamoDeployment:
    body = {"dynamoNim": "frontend:jh2o6dqz", "services": services or {}, **spec}
    return msgspec.convert({"metadata": {"name": name}, "spec": body}, DynamoDeployment)


def nim(name: str = "disagg-frontend", /, **spec: Any) -> DynamoNimDeployment:
    body = {"dynamoNim": "frontend--jh2o6dqz", "dynamoTag": "graphs.disagg:Frontend", **spec}
    return msgspec.convert({"metadata": {"name": name}, "spec": body}, DynamoNimDeployment)


def of_deployment(made: DynamoDeployment) -> list[str]:
    return [str(problem) for problem in deployment_problems(made, RenderSettings(), LegacySettings())]


def of_nim(made: DynamoNimDeployment) -> list[str]:
    return [str(problem) for problem in nim_problems(made, RenderSettings(), LegacySettings())]


def of_request(**spec: Any) -> list[str]:
    return problems_of({"metadata": {"name": "r", "namespace": "ml"}}, **spec)


def problems_of(body: dict[str, Any], **spec: Any) -> list[str]:
    body["spec"] = {"bentoTag": "frontend:jh2o6dqz", **spec}
    settings = RenderSettings(operator_account="ml/operator")
    request = msgspec.convert(body, DynamoNimRequest)
    return [str(problem) for problem in request_problems(request, settings)]


def test_what_has_no_problem() -> None:
    override = {
        "replicas": 0,
        "autoscaling": {"enabled": True},  # the graph has the bounds
        "pvc": {"create": True, "size": "1Gi", "volumeAccessMode": "ReadWriteOnce", "mountPoint": "/d"},
        "resources": None,
    }
    assert [] == of_deployment(deployment({"Frontend": override}, envs=[{"name": "A", "value": "b"}]))
    assert [] == of_nim(nim(autoscaling={"enabled": False}))
    source = {"http": {"url": "https://example.com/a.tar"}}
    assert [] == of_request(source=source, imageBuildTimeout="30m", image="registry.example.com/a:1")
    assert [] == of_request(downloadUrl="s3://bucket/key", imageBuildTimeout=1_000_000_000)


@pytest.mark.parametrize("tag", ["frontend", "frontend:", ":1", "a:b:c", ""])
def test_a_tag_has_a_repository_and_a_version(tag: str) -> None:
    words = f'invalid tag "{tag}" (expected <repository>:<version>, for example frontend:jh2o6dqz)'
    assert of_deployment(deployment(dynamoNim=tag)) == [f"spec.dynamoNim: {words}"]
    assert of_request(bentoTag=tag) == [f"spec.bentoTag: {words}"]


def test_the_name_of_a_dynamonim() -> None:
    [problem] = of_deployment(deployment(dynamoNim="-:1"))
    assert problem == 'spec.dynamoNim: invalid tag "-:1": the name "---1" is not a DNS subdomain'
    [problem] = of_nim(nim(dynamoNim="frontend:jh2o6dqz"))
    assert problem.startswith('spec.dynamoNim: invalid name "frontend:jh2o6dqz" of a DynamoNim (expected ')


@pytest.mark.parametrize(
    ("service", "name"),
    [
        ("a" * 57, f"disagg-{'a' * 57}"),
        ("Front_end", "disagg-front_end"),
        ("front.end", "disagg-front.end"),
        ("", "disagg-"),
    ],
)
def test_a_service_has_a_name_for_its_objects(service: str, name: str) -> None:
    expected = [f'spec.services.{service}: invalid name "{name}" {NAME}']
    assert of_deployment(deployment({service: {}})) == expected
    assert of_nim(nim(name)) == [f'metadata.name: invalid name "{name}" {NAME}']


def test_two_services_have_two_names() -> None:
    words = 'the name "disagg-worker" is that of another service too'
    expected = [f"spec.services.{service}: {words}" for service in ("WORKER", "Worker")]
    assert of_deployment(deployment({"Worker": {}, "WORKER": {}, "Frontend": {}})) == expected


def test_services_are_as_many_as_a_graph_may_have_and_problems_are_bounded() -> None:
    services = {f"s{number}": {"replicas": -1} for number in range(251)}
    expected = ["spec.services: must have at most 250, got 251"]
    assert of_deployment(deployment(services)) == expected
    many = {f"s{number}": {"pvc": {"create": True}} for number in range(250)}
    problems = of_deployment(deployment(many))
    assert len(problems) == MOST_PROBLEMS
    assert problems[-1] == f"spec: more than {MOST_PROBLEMS} problems; the others are not listed"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"pvc": {"name": "d"}}, "pvc.mountPoint: missing mountPoint (for example /data)"),
        (
            {"pvc": {"create": True, "mountPoint": "/d", "volumeAccessMode": "ReadWriteOnce"}},
            "pvc.size: missing size (for example 10Gi)",
        ),
        (
            {"pvc": {"create": True, "mountPoint": "/d", "size": "1Gi"}},
            "pvc.volumeAccessMode: missing volumeAccessMode (for example ReadWriteOnce)",
        ),
        (
            {"autoscaling": {"enabled": True, "minReplicas": 3, "maxReplicas": 2}},
            "autoscaling.maxReplicas: must be at least minReplicas (3), got 2",
        ),
        (
            {"autoscaling": {"enabled": True, "maxReplicas": 0}},
            "autoscaling.maxReplicas: must be at least 1, got 0",
        ),
        (
            {"autoscaling": {"enabled": True, "minReplicas": -1, "maxReplicas": 2}},
            "autoscaling.minReplicas: must be non-negative, got -1",
        ),
        (
            {"envs": [{"name": "PORT", "value": "http"}]},
            'envs[0].value: invalid port "http" (expected a number from 1 to 65535)',
        ),
        ({"envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": 5}]}, "envs[0].value: expected text"),
        ({"envs": [{"name": "PORT", "value": 5}]}, "envs[0].value: expected text"),
        ({"envs": [{"name": ["A"]}]}, "envs[0].name: expected text"),
        ({"extraPodSpec": {"imagePullSecrets": 5}}, "extraPodSpec.imagePullSecrets: expected a list"),
    ],
)
def test_rules_of_components_hold_for_overrides_too(spec: dict[str, Any], problem: str) -> None:
    assert of_nim(nim(**spec)) == [f"spec.{problem}"]
    expected = [f"spec.services.Frontend.{problem}"]
    assert of_deployment(deployment({"Frontend": spec})) == expected


@pytest.mark.parametrize("text", ["<long JSON config>", "Frontend:\n  port: 8000\n", "[1]", "[" * 9999])
def test_a_configuration_that_is_not_json_is_passed_on_with_a_warning(text: str) -> None:
    """The processes of that generation read YAML as well, and the printed example is neither."""
    envs = [{"name": "A", "value": "b"}, {"name": "DYN_DEPLOYMENT_CONFIG", "value": text}]
    assert [] == of_nim(nim(envs=envs))
    [warning] = map(str, nim_warnings(nim(envs=envs)))
    assert warning.startswith("spec.envs[1].value: not a JSON object")
    shared = deployment({"Frontend": {"envs": envs}}, envs=envs)
    assert [] == of_deployment(shared)
    places = [str(warning).partition(": ")[0] for warning in deployment_warnings(shared)]
    assert ["spec.envs[1].value", "spec.services.Frontend.envs[1].value"] == places


@pytest.mark.parametrize("port", ["00001" + "0" * 5000, "65536", "-1", "\u0661"])
def test_a_port_has_few_digits(port: str) -> None:
    [problem] = of_nim(nim(envs=[{"name": "PORT", "value": port}]))
    assert "expected a number from 1 to 65535" in problem


def test_replicas_have_bounds() -> None:
    assert of_nim(nim(replicas=-1)) == ["spec.replicas must be non-negative"]
    [problem] = of_deployment(deployment({"Frontend": {"replicas": -1}}))
    assert problem == "spec.services[Frontend].replicas must be non-negative"
    [unbounded] = of_nim(nim(autoscaling={"enabled": True}))
    assert unbounded == "spec.autoscaling.maxReplicas: missing maxReplicas (for example 4)"


def test_an_override_that_is_no_component_and_variables_of_all_services() -> None:
    [problem] = of_deployment(deployment({"Frontend": {"pvc": {"create": "yes"}}}))
    assert problem == "spec.services.Frontend.pvc.create: Expected `bool | null`, got `str`"
    problems = of_deployment(deployment(envs=[{"name": "PORT", "value": "0"}, {"value": "a"}]))
    port = 'invalid port "0" (expected a number from 1 to 65535)'
    assert problems[0] == f"spec.envs[0].value: {port}"
    assert problems[1].startswith("spec.envs[1].name: ")
    [misfit] = of_deployment(deployment(envs=[{"name": 1}]))
    assert misfit == "spec.envs[0].name: expected text"


EXAMPLE = "(for example registry.example.com/team/chat:1)"
ONE_SOURCE = "spec.source: expected one of oci, s3, http, pvc, configMap, got"


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        (
            {"dockerConfigJsonSecretName": "login"},
            ["spec.dockerConfigJsonSecretName: needs image, for whose registry the Secret is"],
        ),
        (
            {"image": "Registry/UP,push=false"},
            [f'spec.image: invalid image "Registry/UP,push=false" {EXAMPLE}'],
        ),
        ({"source": {}}, [f"{ONE_SOURCE} none"]),
        (
            {"source": {"http": {"url": "https://a"}, "configMap": {"name": "b"}}},
            [f"{ONE_SOURCE} http and configMap"],
        ),
        (
            {"source": {"configMap": {"name": "a"}}, "downloadUrl": "https://example.com"},
            ["spec.downloadUrl: must not be set together with source"],
        ),
        (
            {"imageBuildTimeout": "soon"},
            ['spec.imageBuildTimeout: invalid duration "soon" (expected for example 30m or 1h30m)'],
        ),
        (
            {
                "imageBuilderExtraContainerEnv": [{"name": 1}],
                "imageBuilderExtraPodSpec": {"affinity": "near"},
            },
            [
                "spec.imageBuilderExtraContainerEnv[0].name: expected text",
                "spec.imageBuilderExtraPodSpec.affinity: expected an object",
            ],
        ),
    ],
)
def test_rules_of_requests(spec: dict[str, Any], problems: list[str]) -> None:
    assert of_request(**spec) == problems


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceaccountname"])
@pytest.mark.parametrize("account", ["operator", "dgdr-profiling-job", "planner-serviceaccount"])
def test_no_build_runs_as_the_operator_or_as_its_other_accounts(field: str, account: str) -> None:
    [problem] = of_request(imageBuilderExtraPodSpec={field: account})
    assert problem.startswith(f'spec.imageBuilderExtraPodSpec.serviceAccountName: "{account}" is the ')
    assert [] == of_request(imageBuilderExtraPodSpec={field: "builders"})


@pytest.mark.parametrize("character", [",", '"', "\n", "/", "é", " "])
def test_a_tag_has_no_character_that_the_builder_reads(character: str) -> None:
    words = 'expected letters, digits, "_", "." and "-"'
    metadata = {"name": "r", "annotations": {STORAGE_NAMESPACE: f"x{character}push=false"}}
    [problem] = problems_of({"metadata": metadata})
    assert problem.startswith("spec.bentoTag: invalid image tag")
    assert words in problem
    [problem] = of_request(bentoTag=f"a:b{character}push=false")
    assert words in problem


def test_all_problems_are_found_at_once() -> None:
    problems = of_request(bentoTag="a", image="A B", imageBuildTimeout="soon", source={})
    paths = ["spec.bentoTag", "spec.image", "spec.imageBuildTimeout", "spec.source"]
    assert [problem.partition(":")[0] for problem in problems] == paths


@pytest.mark.parametrize("text", ["x" * 100_000, "x:" + "y" * 100_000])
def test_no_message_repeats_a_long_text(text: str) -> None:
    problems = [
        *of_deployment(deployment({text: {}}, dynamoNim=text)),
        *of_nim(nim(text)),
        *of_request(bentoTag=text, image=text, imageBuildTimeout=text),
    ]
    assert problems
    assert max(map(len, problems)) <= 1100


def test_what_has_no_effect_is_a_warning() -> None:
    assert [str(warning) for warning in nim_warnings(nim(**IGNORED))] == [f"spec.{path}" for path in WARNED]
    warnings = deployment_warnings(deployment({"Frontend": IGNORED}))
    assert [str(warning) for warning in warnings] == [f"spec.services.Frontend.{path}" for path in WARNED]
    assert [] == list(deployment_warnings(deployment({"Frontend": {"replicas": 1}})))


def test_no_user_is_warned_of_what_the_operator_has_written() -> None:
    made = nim(**IGNORED)
    owner = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoDeployment", "name": "disagg"}
    body = msgspec.to_builtins(made)
    body["metadata"]["ownerReferences"] = [{**owner, "uid": "u", "controller": True}]
    assert [] == list(nim_warnings(msgspec.convert(body, DynamoNimDeployment)))
