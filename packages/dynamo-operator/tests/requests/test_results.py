"""What profiling has left: read whatever it is, and refused in words that name the place."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.requests import results
from dynamo_operator.requests.api import FINAL_FILE, DeploymentOverrides, Output
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from kube_runtime.types.meta import Key, Metadata, Object, OwnerReference
from simulated.requests import a_spec

GRAPH = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "generated", "creationTimestamp": None},
    "spec": {"services": {"Frontend": {"componentType": "frontend", "unknown": {"kept": 1}}}},
    "status": {},
}
CURVES = {"kind": "ConfigMap", "metadata": {"name": "curves"}, "data": {"a": "1"}}


def read(text: str, **more: bool) -> results.ProfilingResult:
    """What is found in the results."""
    data = {"config_with_planner.yaml": text, "mocker_config_with_planner.yaml": text}
    return results.read_output(Request(Metadata("r", "n")), a_spec(**more), data)


def stream(*documents: object) -> str:
    """Documents as one text."""
    return "\n---\n".join(map(json.dumps, documents))


def overriding(override: Object) -> Request:
    """A request that overrides the generated graph."""
    spec = {"version": 1, "spec": {"overrides": {"dgd": override}}}
    return Request(Metadata("r", "n", annotations={"nvidia.com/dgdr-spec": json.dumps(spec)}))


def test_the_override_of_a_request_is_merged_into_the_graph() -> None:
    services = {"Frontend": {"replicas": 3}, "Other": {"replicas": 1}}
    override = {**GRAPH, "metadata": {"labels": {"a": "b"}}, "spec": {"services": services}}
    del override["status"]
    data = {"config_with_planner.yaml": stream(GRAPH)}
    result = results.read_output(overriding(override), a_spec(), data)
    assert {"componentType": "frontend", "unknown": {"kept": 1}, "replicas": 3} == (
        result.graph["spec"]["services"]["Frontend"]
    )
    assert {"name": "generated", "labels": {"a": "b"}} == result.graph["metadata"]
    text = "spec.services.Other: ignored because the generated blueprint has no such service"
    assert (f"spec.overrides.dgd: {text}",) == result.warnings
    with pytest.raises(results.BadOutput, match=r"^spec.overrides.dgd: override status is not supported$"):
        results.read_output(overriding({**GRAPH, "status": {}}), a_spec(), data)


def test_an_override_names_the_graph_unless_the_request_does() -> None:
    request = overriding({**GRAPH, "metadata": {"name": "mine"}})
    assert Key("n", "mine") == results.target(request, a_spec())
    named = replace(a_spec(), deployment_overrides=DeploymentOverrides(name="other"))
    assert Key("n", "other") == results.target(request, named)
    assert Key("n", "r") == results.target(overriding({**GRAPH, "metadata": []}), a_spec())


def merge_bomb() -> str:
    """A short text whose last mapping has forty million keys."""
    lines = ["kind: X", "a0: &a0 {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1}"]
    for at in range(1, 8):
        lines.append(f"a{at}: &a{at} {{<<: [{', '.join([f'*a{at - 1}'] * 9)}]}}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        stream(GRAPH, CURVES),
        stream(CURVES, GRAPH),
        "---\n" + stream(GRAPH, CURVES),
        stream(None, "text", {"no": "kind"}, GRAPH, CURVES),
        stream({**GRAPH, "metadata": {"name": "first"}}, CURVES, GRAPH),
    ],
)
def test_the_graph_is_found_wherever_it_stands(text: str) -> None:
    result = read(text)
    assert "generated" == result.graph["metadata"]["name"]
    assert ["curves"] == [each["metadata"]["name"] for each in result.config_maps]
    assert {"name": "generated"} == result.graph["metadata"]
    assert GRAPH["spec"] == result.graph["spec"], "with fields that we do not know"
    assert "status" not in result.graph
    assert "r" == read(stream({**GRAPH, "metadata": None})).graph["metadata"]["name"]


def test_other_kinds_are_left_out_and_named() -> None:
    service = {"kind": "Service", "metadata": {"name": "x"}}
    result = read(stream(GRAPH, service, {"kind": "ConfigMap"}))
    assert ("Service x", "ConfigMap") == result.ignored
    assert () == result.config_maps
    assert "Service x" in result.warnings[0]


def test_a_date_or_a_time_is_a_text_and_a_number_a_key() -> None:
    long = ":".join(["1"] * 100_000)
    data = f"{{2: 2026-11-21, yes: a, at: 1:30, b: {long}}}"
    text = f"kind: ConfigMap\nmetadata: {{name: d}}\ndata: {data}\n---\n" + stream(GRAPH)
    expected = {"2": "2026-11-21", "true": "a", "at": "1:30", "b": long}
    assert expected == read(text).config_maps[0]["data"]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "no DynamoGraphDeployment found"),
        ("a: [", "invalid YAML"),
        ("\t- a", "invalid YAML"),
        (stream({**GRAPH, "spec": {"services": []}}), "failed to convert"),
        (stream({**GRAPH, "spec": None}), "failed to convert"),
        (stream({**GRAPH, "apiVersion": "nvidia.com/v1beta1", "spec": {"components": 1}}), "spec.components"),
        (merge_bomb(), "more than 200000 values"),
        ("kind: !!bool maybe", "1:7: cannot read 'maybe' as !!bool"),
        ("a: !!int x", "1:4: cannot read 'x' as !!int"),
        ("a: !!float x", "cannot read 'x' as !!float"),
        ("a: !!timestamp x", "invalid YAML"),
        ("a: .inf", "invalid number .inf"),
        ("a: .nan", "invalid number .nan"),
        ("a: 1\na: 2", "2:1: duplicate key 'a'"),
        ("kind: X\na: &a [*a]", "an alias refers to a value that contains it"),
        ("\n---\n".join(["[" + "[], " * 50_000 + "]"] * 5), "more than 200000 values"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_cause(text: str, cause: str) -> None:
    with pytest.raises(results.BadOutput, match=r"config_with_planner\.yaml") as refused:
        read(text)
    assert cause in str(refused.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(results.BadOutput, match=r"key mocker_config_with_planner\.yaml not found"):
        results.read_output(Request(Metadata("r", "n")), a_spec(use_mocker=True), {})


SCALARS = st.sampled_from(
    ["maybe", "x", "1", "yes", "2026-99-99", "1:30", "0x", "9" * 5000, ".inf", "-", "=", "~", "*a", "<<"]
)
TAGS = st.sampled_from(
    ["", *(f"!!{each} " for each in ("bool", "int", "float", "timestamp", "binary", "null", "set", "omap"))]
)
TAGGED = st.builds(str.__add__, TAGS, SCALARS | st.text("!&*[]{}: ,a1\n", max_size=8))
AWKWARD = st.lists(TAGGED, max_size=6).map(lambda each: f"kind: X\na: &a [{', '.join(each)}]")


@given(st.text(max_size=200) | AWKWARD)
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(results.BadOutput, match=r"config_with_planner\.yaml"):
        read(text)


@given(st.text(max_size=200) | AWKWARD | TAGGED.map("phase: {}".format))
def test_any_status_is_read(text: str) -> None:
    assert len(results.progress({"profiler_status.yaml": text}).message) <= 200
    assert results.progress({"profiler_status.yaml": "phase: !!bool maybe"}).phase == ""


def test_of_what_a_status_keeps_only_config_maps_with_names_are_read() -> None:
    odd = [{}, {"kind": "ConfigMap"}, {"kind": "ConfigMap", "metadata": "x"}, {"kind": "Secret"}]
    assert [CURVES] == list(results.named_config_maps([CURVES, *odd]))


def test_config_maps_that_no_status_can_hold_are_refused() -> None:
    with pytest.raises(results.BadOutput, match="limit 250000"):
        read(stream(GRAPH, {**CURVES, "data": {"a": "x" * 250_001}}))


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        ({"nodeSelector": "x"}, "spec.services[W].extraPodSpec.nodeSelector is not a mapping"),
        ({"tolerations": "x"}, "spec.services[W].extraPodSpec.tolerations is not a list"),
        ({"imagePullSecrets": 5}, "spec.services[W].extraPodSpec.imagePullSecrets is not a list"),
    ],
)
def test_a_pod_that_has_not_the_form_of_one_is_refused(pod: Object, path: str) -> None:
    graph = {**GRAPH, "spec": {"services": {"W": {"componentType": "worker", "extraPodSpec": pod}}}}
    spec = a_spec(
        node_selector={"a": "b"}, tolerations=({"operator": "Exists"},), image_pull_secrets=({"name": "s"},)
    )
    with pytest.raises(results.BadOutput) as refused:
        results.completed(graph, spec)
    assert path in str(refused.value)


@pytest.mark.parametrize("name", ["labels", "annotations"])
def test_a_config_map_whose_labels_are_none_is_refused(name: str) -> None:
    metadata = Metadata(name="r", namespace="n", uid="u")
    request = Request(metadata)
    odd = {**CURVES, "metadata": {"name": "curves", name: 5}}
    with pytest.raises(results.BadOutput, match=f"metadata.{name} is not a mapping"):
        results.config_map(request, odd, "n")


def test_a_graph_that_no_status_can_hold_is_refused() -> None:
    text = stream(GRAPH).replace('"kept": 1', '"kept": "' + "\\0" * 200_000 + '"')
    with pytest.raises(results.BadOutput, match="limit 900000"):
        read(text)


TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
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


ENV = ({"name": "A", "value": "2"}, {"name": "B", "value": "3"})
PLACED = a_spec(env=ENV, tolerations=(TOLERATION,), node_selector={"pool": "gpu"})


def test_workers_get_the_placement_and_what_the_base_says_counts_more() -> None:
    text = results.completed_base(BASE, PLACED)
    assert text is not None
    expected = yaml.safe_load(BASE)
    worker = expected["spec"]["services"]["Decode"]
    worker["extraPodSpec"]["tolerations"] = [TOLERATION]
    worker["envs"].append({"name": "B", "value": "3"})
    assert expected == yaml.safe_load(text)
    assert text == results.completed_base(BASE, replace(PLACED, use_mocker=True)), "measured on real engines"
    assert results.completed_base(text, PLACED) is None, "it has all"
    assert results.completed_base(BASE, a_spec(config={})) is None, "there is nothing to add"


CACHE: Object = {"deployment": {"modelCache": {"pvcName": "weights", "mountPath": "/models"}}}


@pytest.mark.parametrize("is_mocked", [False, True])
def test_the_pvc_of_the_model_is_mounted_where_the_profiler_has_it(is_mocked: bool) -> None:
    graph = yaml.safe_load(BASE)
    spec = results.completed(graph, a_spec(config=CACHE, use_mocker=is_mocked))["spec"]
    mount = [{"name": "weights", "mountPoint": "/models"}]
    mounts = {name: service.get("volumeMounts") for name, service in spec["services"].items()}
    assert {"Frontend": mount, "Planner": None, "Decode": mount} == mounts
    assert [{"name": "weights", "create": False}] == spec["pvcs"]
    assert {**graph, "spec": spec} == results.completed({**graph, "spec": spec}, a_spec(config=CACHE))


@pytest.mark.parametrize(
    "own",
    [
        {"volumeMounts": [{"name": "other", "mountPoint": "/models/"}]},
        {"extraPodSpec": {"mainContainer": {"volumeMounts": [{"name": "v", "mountPath": "/models"}]}}},
    ],
)
def test_a_mount_of_the_graphs_own_at_that_path_stays(own: Object) -> None:
    graph = {"spec": {"services": {"W": {"componentType": "worker", **own}}}}
    assert graph == results.completed(graph, a_spec(config=CACHE))


def test_variables_of_the_deployment_reach_the_workers_before_those_of_the_profiler() -> None:
    envs = [{"name": "A", "value": "lost"}, {"name": "B", "value": "0"}, {"name": "C", "value": "4"}]
    spec = a_spec(config={"deployment": {"envs": envs}}, env=ENV)
    services = results.completed(yaml.safe_load(BASE), spec)["spec"]["services"]
    found = {env["name"]: env["value"] for env in services["Decode"]["envs"]}
    assert {"A": "1", "B": "0", "C": "4"} == found
    assert "envs" not in services["Frontend"]


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
    assert results.completed_base(text, PLACED) is None


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
    text = results.completed_base(json.dumps(graph), PLACED)
    assert text is None or services.keys() == yaml.safe_load(text)["spec"]["services"].keys()


REQUEST = Request(Metadata(name="r", namespace="n", uid="u"))
CONTROLLER = OwnerReference(
    api_version="nvidia.com/v1alpha1", kind="DynamoGraphDeploymentRequest", name="r", uid="u", controller=True
)
GRAPHS = replace(CONTROLLER, kind="DynamoGraphDeployment", uid="g", controller=None)
OURS = Output(Metadata(name="curves", namespace="n", labels=results.tracking(REQUEST)))


def test_a_config_map_is_renamed_only_if_its_name_is_taken() -> None:
    graph = {"spec": {"services": {"w": {"configMap": {"name": "curves"}, "other": {"name": "curves"}}}}}
    stranger = Output(Metadata(name="curves", namespace="n"))
    config = {"kind": "ConfigMap", "metadata": {"name": "config"}}
    result = results.ProfilingResult(graph, (CURVES, config))
    assert result is results.with_free_names(REQUEST, result, {})
    assert result is results.with_free_names(REQUEST, result, {"curves": OURS})
    renamed = results.with_free_names(REQUEST, result, {"curves": stranger})
    assert ["curves-r", "config"] == [each["metadata"]["name"] for each in renamed.config_maps]
    services = {"w": {"configMap": {"name": "curves-r"}, "other": {"name": "curves"}}}
    assert {"spec": {"services": services}} == renamed.graph


@pytest.mark.parametrize(
    ("made_for", "owners", "is_ours"),
    [
        ("", (CONTROLLER,), True),
        ("", (GRAPHS,), False),
        ("u", (replace(CONTROLLER, uid="other"),), False),
        ("u", (GRAPHS,), True),
        ("former", (GRAPHS,), False),
        ("former", (), False),
    ],
)
def test_labels_alone_do_not_make_a_config_map_ours(
    made_for: str, owners: tuple[OwnerReference, ...], is_ours: bool
) -> None:
    annotations = {labels.REQUEST_UID: made_for} if made_for else {}
    metadata = replace(OURS.metadata, annotations=annotations, owner_references=owners)
    assert is_ours == results.is_own_config_map(REQUEST, replace(OURS, metadata=metadata))
    later = replace(REQUEST, metadata=replace(REQUEST.metadata, creation_timestamp="2026-01-01T00:00:00Z"))
    assert (made_for == "u" and is_ours) == results.is_own_config_map(later, replace(OURS, metadata=metadata))


def test_the_results_of_a_job_of_dynamo_1x_are_read() -> None:
    request = Request(Metadata("r", "n"))
    found = results.read_output(request, a_spec(), {FINAL_FILE: stream(GRAPH)})
    assert found.graph["spec"]["services"]
