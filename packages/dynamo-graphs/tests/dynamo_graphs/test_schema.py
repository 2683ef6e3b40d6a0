"""A document that the API server would refuse gets one clear line for each mistake."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.api import documents, statuses
from dynamo_graphs.schema import RULES, joined, schema_problems, status_problems
from dynamo_operator.component.api import FRAMEWORKS
from dynamo_operator.crds import LATER_RESOURCES, RESOURCES
from dynamo_operator.shared.problems import ProblemKind
from kube_runtime.schema import resource_schema
from kube_runtime.types.meta import Object


def graph(spec: Any, **metadata: Any) -> Object:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "g", **metadata},
        "spec": spec,
    }


def decode(service: Any) -> Object:
    return graph({"services": {"Decode": service}})


def lines(document: Object) -> list[str]:
    return [str(problem) for problem in schema_problems(document)]


def test_all_problems_are_reported_at_once_in_the_order_of_their_paths() -> None:
    document = graph(
        {
            "backendFramework": "vlm",
            "pvcs": [{"create": True}],
            "services": {"Decode": {"replicas": "two", "extraPodSpec": {"mainContaner": {}}}},
        },
        name="G",
    )
    one_of = joined(FRAMEWORKS)
    assert [
        (
            'metadata.name: invalid name "G" (expected at most 253 lower-case letters, digits, '
            '"-" and ".", with a letter or digit at both ends)'
        ),
        f'spec.backendFramework: unsupported value "vlm" (expected {one_of}; did you mean "vllm"?)',
        ("spec.pvcs[0]: When create is true, size, storageClass, and volumeAccessMode are required"),
        "spec.pvcs[0].name: this field is required",
        ('spec.services.Decode.extraPodSpec.mainContaner: unknown field; did you mean "mainContainer"?'),
        'spec.services.Decode.replicas: expected an integer, got the text "two"',
    ] == lines(document)


@pytest.mark.parametrize(
    ("service", "line"),
    [
        ({"replicas": True}, "replicas: expected an integer, got true"),
        ({"replicas": 1.5}, "replicas: expected an integer, got the number 1.5"),
        ({"replicas": [1]}, "replicas: expected an integer, got a list"),
        ({"replicas": -1}, "replicas: must be at least 0, got -1"),
        ({"replicas": 2**31}, "replicas: must be at most 2147483647, got 2147483648"),
        ({"labels": {"a": 1}}, "labels.a: expected text, got the number 1"),
        ({"envs": {"A": "b"}}, "envs: expected a list, got an object"),
        ({"envs": [None]}, "envs[0]: expected an object, got nothing (null)"),
        ({"ingress": {"enabled": "yes"}}, 'ingress.enabled: expected true or false, got the text "yes"'),
        (
            {"sharedMemory": {"size": "8Gb"}},
            'sharedMemory.size: "8Gb" is not a quantity such as 8Gi, 500m or 2',
        ),
        (
            {"sharedMemory": {"size": 1.5}},
            "sharedMemory.size: expected an integer or text, got the number 1.5",
        ),
        ({"image": "i"}, 'image: unknown field; did you mean "extraPodSpec.mainContainer.image"?'),
        ({"zzz": 1}, "zzz: unknown field"),
        (
            {"extraPodSpec": {"mainContainer": {"env": [{"name": "a"}, {"name": "a"}]}}},
            "extraPodSpec.mainContainer.env[1]: duplicate entry with name a",
        ),
    ],
)
def test_a_mistake_is_reported_with_what_was_expected_and_what_was_found(service: Object, line: str) -> None:
    assert [f"spec.services.Decode.{line}"] == lines(decode(service))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"apiVersion": None}, "apiVersion: this field is required"),
        (
            {"apiVersion": "nvidia.com/v1"},
            (
                'apiVersion: unsupported value "nvidia.com/v1" (expected "nvidia.com/v1alpha1" '
                'or "nvidia.com/v1beta1"; did you mean "nvidia.com/v1beta1"?)'
            ),
        ),
        ({"kind": None}, "kind: this field is required"),
        ({"metadata": None}, "metadata.name: this field is required"),
        ({"metadata": {"name": ""}}, "metadata.name: this field is required"),
        ({"metadata": []}, "metadata: expected an object, got a list"),
        ({"spec": []}, "spec: expected an object, got a list"),
        ({"specs": {}}, 'specs: unknown field; did you mean "spec"?'),
    ],
)
def test_what_surrounds_the_spec_is_checked_too(change: Object, line: str) -> None:
    assert [line] == lines({**graph({}), **change})


def test_a_status_in_a_document_is_not_looked_at() -> None:
    assert [] == lines({**graph({}), "status": {"conditions": [{}], "anything": 1}})


def test_a_wrong_label_key_and_a_wrong_label_value_are_two_problems() -> None:
    paths = [problem.path for problem in schema_problems(graph({}, labels={"a b": "c d"}))]
    assert ["metadata.labels.a b"] * 2 == paths


def test_annotations_may_not_be_larger_than_the_api_server_allows() -> None:
    assert [] == lines(graph({}, annotations={"a": "x" * (256 * 1024 - 1)}))
    assert ["metadata.annotations: 262145 bytes of annotations (limit 262144 in total)"] == lines(
        graph({}, annotations={"a": "x" * 256 * 1024})
    )


def test_a_problem_has_its_kind() -> None:
    (unknown,) = schema_problems({**graph({}), "kind": "DynamoGraphDeploymnt"})
    assert ProblemKind.NOT_SUPPORTED == unknown.kind
    assert unknown.message.endswith('did you mean "DynamoGraphDeployment"?)')
    document = graph({"pvcs": [{"name": "a", "nam": 1}], "restart": {}, "backendFramework": "x"})
    kinds = {problem.path: problem.kind for problem in schema_problems(document)}
    assert {
        "spec.pvcs[0].nam": ProblemKind.UNKNOWN_FIELD,
        "spec.restart.id": ProblemKind.REQUIRED,
        "spec.backendFramework": ProblemKind.NOT_SUPPORTED,
    } == kinds


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["spec", "metadata", "services", "pvcs", "name", "labels", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


NAMES = [resource.KIND.name for resource in RESOURCES]


@settings(deadline=None)
@given(
    st.sampled_from(NAMES) | JSON,
    st.fixed_dictionaries({}, optional={"apiVersion": JSON, "metadata": JSON, "spec": JSON}),
)
def test_any_json_document_gets_an_answer(kind: Any, document: Object) -> None:
    problems = schema_problems({**document, "kind": kind})
    assert problems or kind in NAMES
    assert all(problem.path and problem.message for problem in problems)


def test_every_rule_of_the_schemas_is_known_to_the_offline_check() -> None:
    def expressions(node: Any) -> set[str]:
        if isinstance(node, dict):
            rules = [rule["rule"] for rule in node.get("x-kubernetes-validations", ())]
            own = {rule for rule in rules if "oldSelf" not in rule}  # offline nothing was before
            return own.union(*(expressions(inner) for inner in node.values()))
        if isinstance(node, list):
            return set().union(*(expressions(inner) for inner in node))
        return set()

    declaring = (*RESOURCES, *LATER_RESOURCES)
    assert set(RULES) == set().union(*(expressions(resource_schema(resource)) for resource in declaring))


@pytest.mark.parametrize("name", documents.GOOD)
def test_a_good_document_of_the_cluster_tests_has_no_problem(name: str) -> None:
    assert () == schema_problems(documents.GOOD[name])


@pytest.mark.parametrize("name", documents.BAD)
def test_a_document_that_the_api_server_refuses_has_a_problem_at_each_wrong_field(name: str) -> None:
    document, paths = documents.BAD[name]
    assert paths == {problem.path for problem in schema_problems(document)}


@pytest.mark.parametrize("name", [*statuses.GOOD, *statuses.BAD])
def test_a_status_has_problems_if_the_api_server_refuses_it(name: str) -> None:
    owner, status = (statuses.GOOD | statuses.BAD)[name]
    problems = status_problems(statuses.TYPES[owner["kind"]], status)
    assert bool(problems) == (name in statuses.BAD)
    assert all(problem.path.startswith("status.") for problem in problems)
