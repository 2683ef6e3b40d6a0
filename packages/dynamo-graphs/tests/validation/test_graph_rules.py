"""The rules of a graph as a whole."""

from typing import Any

import msgspec
import pytest

from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from kube_runtime.kind import Object
from specs import a_graph, a_service


def problems(services: dict[str, Object], **spec: Any) -> list[str]:
    settings = spec.pop("settings", RenderSettings())
    return [str(problem) for problem in graph_problems(a_graph(services, **spec), settings)]


def test_a_plain_graph_has_no_problems() -> None:
    assert [] == problems({"Frontend": a_service("frontend"), "Worker": a_service()})


def test_a_graph_needs_a_service() -> None:
    assert ["spec.services must have at least one service"] == problems({})


@pytest.mark.parametrize(
    ("service", "factor", "expected"),
    [
        ({"replicas": 2}, 2**30, "2147483648 (limit 2147483647)"),
        ({"replicas": 2}, 2**30 - 1, None),
        ({"replicas": 2, "scalingAdapter": {"enabled": True}}, 2**30, None),
        ({"replicas": 11, "multinode": {"nodeCount": 2}}, 100, "1100 (limit 1000)"),
    ],
)
def test_no_factor_makes_a_service_larger_than_it_can_be(
    service: Object, factor: int, expected: str | None
) -> None:
    pod = {"mainContainer": {"image": "x", "args": ["run"]}}
    reported = problems({"w": a_service(extraPodSpec=pod, **service)}, replicas=factor)
    message = f"spec.replicas: {factor} times the replicas of w is {expected}"
    assert ([message] if expected else []) == reported


def test_a_problem_of_a_service_names_the_service() -> None:
    reported = problems({"Worker": a_service(replicas=-1)})
    assert ["spec.services[Worker].replicas must be non-negative"] == reported


def test_the_graphs_framework_is_held_against_the_command() -> None:
    pod = {"mainContainer": {"image": "x", "args": ["python3 -m dynamo.sglang"]}}
    [problem] = problems({"Worker": a_service(extraPodSpec=pod)}, backendFramework="vllm")
    assert 'detected "sglang"' in problem


@pytest.mark.parametrize(("one", "other"), [("w", "W"), ("a.b", "a-b"), ("a_b", "a-b")])
def test_services_whose_names_become_one_are_refused(one: str, other: str) -> None:
    [problem] = problems({one: a_service(), other: a_service()})
    assert "would both create objects named" in problem


def test_a_debug_copy_may_not_take_the_name_of_a_service() -> None:
    switch = {"nvidia.com/enable-stealing-traffic-debug-mode": "true"}
    both = {"w": a_service(annotations=switch), "w-d": a_service()}
    assert ['spec.services.w-d: "w" and "w-d" would both create objects named "chat-w-d"'] == (
        problems(both)
    )


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("labels", "nvidia.com/dynamo-component"),
        ("labels", "nvidia.com/selector"),
        ("labels", "role"),
        ("annotations", "nvidia.com/enable-grove"),
        ("annotations", "nvidia.com/last-applied-hash"),
    ],
)
def test_a_graph_cannot_use_reserved_keys_and_the_message_lists_them(field: str, key: str) -> None:
    [problem] = problems({"w": a_service()}, **{field: {key: "x"}})
    path, _, message = problem.partition(": ")
    assert f"spec.{field}[{key}]" == path
    assert key in message.partition("reserved keys: ")[2].rstrip(")").split(", ")


def test_the_labels_of_a_graph_must_be_labels() -> None:
    wrong = {"a b": "x", "team": "-", "app.kubernetes.io/part-of": "fine"}
    assert ["spec.labels[a b]", "spec.labels[team]"] == [
        problem.partition(": ")[0] for problem in problems({"w": a_service()}, labels=wrong)
    ]


def test_a_service_may_name_our_labels_as_ever_and_ours_win() -> None:
    labels = {"nvidia.com/dynamo-component": "mine"}
    assert [] == problems({"w": a_service(labels=labels)})


@pytest.mark.parametrize(
    "budget",
    [
        {"minAvailable": 1, "maxUnavailable": 1},
        {"minAvailable": -1},
        {"maxUnavailable": "101%"},
        {"maxUnavailable": "half"},
        {"minAvailable": "9" * 5000},
        {"minAvailable": "00000000001" + "0" * 5000},
    ],
)
def test_a_budget_has_one_bound_that_kubernetes_understands(budget: Object) -> None:
    [problem] = problems({"w": a_service(disruptionBudget=budget)})
    assert problem.startswith("spec.services.w.disruptionBudget")


@pytest.mark.parametrize("budget", [{}, {"minAvailable": 0}, {"maxUnavailable": "100%"}])
def test_a_budget_may_be_empty_a_number_or_a_percentage(budget: Object) -> None:
    assert [] == problems({"w": a_service(disruptionBudget=budget)})


def test_a_budget_is_not_for_groups() -> None:
    several = a_service(
        disruptionBudget={"minAvailable": 1},
        multinode={"nodeCount": 2},
        extraPodSpec={"mainContainer": {"image": "x", "args": ["run"]}},
    )
    [problem] = problems({"w": several})
    assert "the pods of a multinode group are one unit" in problem


def test_a_service_needs_a_name() -> None:
    assert ["spec.services._: invalid service name (expected at least one letter or digit)"] == (
        problems({"_": a_service()})
    )


def test_the_discovery_backend_of_the_graph_is_checked() -> None:
    metadata = {"annotations": {"nvidia.com/dynamo-discovery-backend": "etcdd"}}
    [problem] = problems({"w": a_service()}, metadata=metadata)
    assert problem.startswith("metadata.annotations[nvidia.com/dynamo-discovery-backend]: ")
    assert 'did you mean "etcd"?' in problem


def test_variables_of_the_graph_are_checked() -> None:
    assert ["spec.envs[0].name: missing name of an environment variable"] == (
        problems({"w": a_service()}, envs=[{"value": "x"}])
    )


def test_a_pvc_to_create_needs_all_its_fields() -> None:
    claim = {"name": "c", "create": True, "size": "0"}
    reported = problems({"w": a_service()}, pvcs=[claim, {"name": "c"}, {"name": ""}])
    assert [
        "spec.pvcs[0].size is required when create is true",
        "spec.pvcs[0].storageClass is required when create is true",
        "spec.pvcs[0].volumeAccessMode is required when create is true",
        'spec.pvcs[1].name: duplicate PVC "c"',
        "spec.pvcs[2].name is required",
    ] == reported


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            {"type": "Parallel", "order": ["a", "b"]},
            "order cannot be specified when strategy is parallel",
        ),
        ({"order": ["a"]}, "number of unique services as the deployment; missing: b"),
        ({"order": ["a", "b", "a"]}, "order must be unique"),
        ({"order": ["a", "b", "A"]}, 'contains unknown service: A; did you mean "a"?'),
    ],
)
def test_the_order_of_a_restart_names_every_service_once(strategy: Object, expected: str) -> None:
    services = {"a": a_service(), "b": a_service()}
    [problem] = problems(services, restart={"id": "r", "strategy": strategy})
    assert expected in problem


def test_a_default_ingress_needs_a_host_that_can_exist() -> None:
    settings = RenderSettings(ingress_class_name="nginx", ingress_host_suffix="not a host")
    [problem] = problems({"Frontend": a_service("frontend")}, settings=settings)
    assert 'spec.services.Frontend.ingress.host: invalid host name "chat.not a host"' == problem


@pytest.mark.parametrize("key", ["nvidia.com/paused", "nvidia.com/suspend"])
def test_a_switch_of_the_graph_is_on_or_off(key: str) -> None:
    def problems_of(value: str) -> list[str]:
        graph = a_graph({"Worker": a_service()})
        metadata = msgspec.structs.replace(graph.metadata, annotations={key: value})
        graph = msgspec.structs.replace(graph, metadata=metadata)
        return [str(problem) for problem in graph_problems(graph, RenderSettings())]

    assert [] == problems_of("true") == problems_of("false")
    [problem] = problems_of("yes")
    assert "expected true or false" in problem


def test_a_list_of_thousands_is_refused_in_one_line() -> None:
    strategy = {"order": [f"s{number}" for number in range(30_000)]}
    [problem] = problems({"a": a_service()}, restart={"id": "r", "strategy": strategy})
    assert "too many entries: 30000 (expected one for each of 1 services)" in problem


def test_an_unknown_access_mode_is_reported() -> None:
    claim = {"name": "m", "create": True, "storageClass": "fast", "size": "1Gi"}
    (problem,) = problems({"w": a_service()}, pvcs=[{**claim, "volumeAccessMode": "latest"}])
    assert problem.startswith('spec.pvcs[0].volumeAccessMode: unknown access mode "latest"')
    assert [] == problems({"w": a_service()}, pvcs=[{**claim, "volumeAccessMode": "ReadOnlyMany"}])
