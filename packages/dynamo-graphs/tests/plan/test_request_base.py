"""The base graph gets what the user says of the pods that profile, and nothing else is changed in it."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec, ProfilingConfig
from dynamo_operator.requests.results import completed, completed_base
from kube_runtime.kind import Object

TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
PLACED: Object = {"tolerations": [TOLERATION], "nodeSelector": {"pool": "gpu"}}
BASE = """\
# what the user keeps in git
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: base}
spec:
  services:
    Frontend: {componentType: frontend, replicas: 1}
    Planner: {componentType: planner}
    Decode:
      componentType: worker
      envs: [{name: A, value: "1"}]
      extraPodSpec:
        nodeSelector: {pool: own}
        mainContainer: {image: "runtime:1", args: ["--model", "2020-01-01", "é\\t"]}
"""


def a_spec(**more: Any) -> DynamoGraphDeploymentRequestSpec:
    env = ({"name": "A", "value": "2"}, {"name": "B", "value": "3"})
    return DynamoGraphDeploymentRequestSpec("m", "vllm", ProfilingConfig("p:1", env=env), **more)


def test_workers_get_the_placement_and_what_the_base_says_counts_more() -> None:
    text = completed_base(BASE, a_spec(), PLACED)
    assert text is not None
    expected = yaml.safe_load(BASE)
    worker = expected["spec"]["services"]["Decode"]
    worker["extraPodSpec"]["tolerations"] = [TOLERATION]
    worker["envs"].append({"name": "B", "value": "3"})
    assert expected == yaml.safe_load(text)


CACHE: Object = {"deployment": {"modelCache": {"pvcName": "weights", "mountPath": "/models"}}}


def with_config(config: Object, **more: Any) -> DynamoGraphDeploymentRequestSpec:
    """A request with this configuration of the profiler, and no variables."""
    return DynamoGraphDeploymentRequestSpec("m", "vllm", ProfilingConfig("p:1", config), **more)


@pytest.mark.parametrize("is_mocked", [False, True])
def test_the_pvc_of_the_model_is_mounted_where_the_profiler_has_it(is_mocked: bool) -> None:
    graph = yaml.safe_load(BASE)
    spec = completed(graph, with_config(CACHE, use_mocker=is_mocked), {})["spec"]
    mount = [{"name": "weights", "mountPoint": "/models"}]
    mounts = {name: service.get("volumeMounts") for name, service in spec["services"].items()}
    assert {"Frontend": mount, "Planner": None, "Decode": mount} == mounts
    assert [{"name": "weights", "create": False}] == spec["pvcs"]
    assert {**graph, "spec": spec} == completed({**graph, "spec": spec}, with_config(CACHE), {})


@pytest.mark.parametrize(
    "own",
    [
        {"volumeMounts": [{"name": "other", "mountPoint": "/models/"}]},
        {
            "extraPodSpec": {
                "mainContainer": {"volumeMounts": [{"name": "v", "mountPath": "/models"}]}
            }
        },
    ],
)
def test_a_mount_of_the_graphs_own_at_that_path_stays(own: Object) -> None:
    graph = {"spec": {"services": {"W": {"componentType": "worker", **own}}}}
    assert graph == completed(graph, with_config(CACHE), {})


def test_variables_of_the_deployment_reach_the_workers_before_those_of_the_profiler() -> None:
    envs = [
        {"name": "A", "value": "lost"},
        {"name": "B", "value": "0"},
        {"name": "C", "value": "4"},
    ]
    profiling = ProfilingConfig(
        "p:1", {"deployment": {"envs": envs}}, env=a_spec().profiling_config.env
    )
    spec = DynamoGraphDeploymentRequestSpec("m", "vllm", profiling)
    services = completed(yaml.safe_load(BASE), spec, {})["spec"]["services"]
    found = {env["name"]: env["value"] for env in services["Decode"]["envs"]}
    assert {"A": "1", "B": "0", "C": "4"} == found
    assert "envs" not in services["Frontend"]


def test_simulated_engines_are_measured_on_real_ones() -> None:
    assert completed_base(BASE, a_spec(use_mocker=True), PLACED) == completed_base(
        BASE, a_spec(), PLACED
    )


def test_a_base_that_has_it_all_stays_as_the_user_wrote_it() -> None:
    text = completed_base(BASE, a_spec(), PLACED)
    assert text is not None
    assert completed_base(text, a_spec(), PLACED) is None


def test_nothing_to_add_leaves_the_base_as_it_is() -> None:
    plain = DynamoGraphDeploymentRequestSpec("m", "vllm", ProfilingConfig("p:1"))
    assert completed_base(BASE, plain, {}) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: b",
        "{",
        "kind: ConfigMap",
        "kind: DynamoGraphDeployment",
        "kind: DynamoGraphDeployment\nspec: 1",
        "kind: DynamoGraphDeployment\nspec: {services: [1]}",
        "kind: DynamoGraphDeployment\nspec: {services: {W: 1}}",
        "kind: DynamoGraphDeployment\nspec: {services: {W: {componentType: worker, envs: [1]}}}",
        f"{BASE}---\n{BASE}",
        BASE.replace("nodeSelector: {pool: own}", "tolerations: 5"),
        BASE.replace("replicas: 1", "replicas: !!bool maybe"),
    ],
)
def test_what_is_no_graph_is_left_to_the_profiler(text: str) -> None:
    assert completed_base(text, a_spec(), PLACED) is None


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
_FIELDS = st.sampled_from(("componentType", "extraPodSpec", "envs", "scalingAdapter"))
_SERVICE = st.dictionaries(_FIELDS, _VALUES | st.just("worker"))


@given(st.dictionaries(st.sampled_from(("W", "F")), _SERVICE | _VALUES))
@example({"W": {"componentType": {"\x7f\x80\ufffe": None}}, "F": {"componentType": "worker"}})
def test_any_services_are_completed_or_left_alone(services: dict[str, Any]) -> None:
    graph = {"kind": "DynamoGraphDeployment", "spec": {"services": services}}
    text = completed_base(json.dumps(graph), a_spec(), PLACED)
    assert text is None or services.keys() == yaml.safe_load(text)["spec"]["services"].keys()
