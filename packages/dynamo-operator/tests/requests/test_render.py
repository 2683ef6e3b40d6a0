"""The profiling Job: the profiler's settings, what the user may add, and that no value reaches a shell."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.requests.api import ConfigMapReference, DeploymentOverrides
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.render import (
    model_cache,
    profiler_config,
    profiler_config_text,
    profiling_job,
    uses_ai_configurator,
)
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Metadata, Object
from simulated import requests


def a_spec(config: Object | None = None, **fields: Any) -> RequestSpec:
    """A spec with that configuration of the profiler."""
    return requests.a_spec(**{"model": "acme/tiny", "backend": "trtllm", "config": config, **fields})


def a_job(spec: RequestSpec, name: str = "r", **settings: Any) -> Object:
    """The Job of a request with that spec."""
    metadata = Metadata(name=name, namespace="team-a", uid="u-1")
    request = Request(metadata, spec, RequestStatus(observed_generation=3))
    return profiling_job(request, spec, RenderSettings(**settings))


def test_the_base_graph_is_mounted_from_where_it_is() -> None:
    spec = a_spec(config_map_ref=ConfigMapReference("mine", "a.yaml"))
    request = Request(Metadata(name="r", namespace="n", uid="u"), spec)
    for base, name, key in ((None, "mine", "a.yaml"), (ConfigMapReference("ours"), "ours", None)):
        job = profiling_job(request, spec, RenderSettings(), base)
        volumes = {each["name"]: each for each in job["spec"]["template"]["spec"]["volumes"]}
        item = {"key": key or "disagg.yaml", "path": "disagg.yaml"}
        assert {"name": name, "items": [item]} == volumes["profiling-config"]["configMap"]
        (profiler, _) = containers(job)
        mounts = {each["name"]: each["mountPath"] for each in profiler["volumeMounts"]}
        assert "/config" == mounts["profiling-config"]


def containers(job: Object) -> list[Any]:
    """The profiler and the copier."""
    found: list[Any] = job["spec"]["template"]["spec"]["containers"]
    return found


def test_the_configuration_of_the_worked_example_is_merged_as_documented() -> None:
    config = {
        "sla": {"isl": 2048, "osl": 256, "ttft": 250.0, "itl": 12.5},
        "sweep": {"useAiConfigurator": True, "aicSystem": "h100_sxm", "aicBackendVersion": "1.0"},
        "hardware": {"maxNumGpusPerEngine": 4},
    }
    spec = a_spec(
        config,
        config_map_ref=ConfigMapReference("tiny-base"),
        deployment_overrides=DeploymentOverrides(workers_image="rt:9"),
    )
    expected = """\
deployment:
  dgd_image: rt:9
  model: acme/tiny
  namespace: team-a
engine:
  backend: trtllm
  config: /config/disagg.yaml
hardware:
  maxNumGpusPerEngine: 4
output_dir: /data
sla:
  isl: 2048
  itl: 12.5
  osl: 256
  ttft: 250
sweep:
  aicBackendVersion: "1.0"
  aicSystem: h100_sxm
  useAiConfigurator: true
"""
    assert expected == profiler_config_text(spec, "team-a")


def test_keys_of_the_user_in_camel_case_are_replaced() -> None:
    config: Object = {"outputDir": "/x", "deployment": {"dgdImage": "mine", "namespace": "theirs"}}
    spec = a_spec(config, deployment_overrides=DeploymentOverrides(workers_image="rt:9"))
    read = yaml.safe_load(profiler_config_text(spec, "team-a"))
    assert {"dgd_image": "rt:9", "model": "acme/tiny", "namespace": "theirs"} == read["deployment"]
    assert "/data" == read["output_dir"]
    assert "outputDir" not in read
    assert {"dgdImage": "mine", "namespace": "theirs"} == config["deployment"], "ours is a copy"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8).map("x{}".format), JSON, max_size=3))
def test_every_value_of_the_user_arrives_as_it_was_written(config: Object) -> None:
    read = yaml.safe_load(profiler_config_text(a_spec(config), "n"))
    assert config == {key: each for key, each in read.items() if key in config}


@pytest.mark.parametrize(
    ("sweep", "is_offline"),
    [
        ({"useAiConfigurator": True}, True),
        ({"use_ai_configurator": True}, True),
        ({"useAiConfigurator": False, "use_ai_configurator": True}, False),
        ({"useAiConfigurator": "true"}, False),
        (None, False),
        ("text", False),
    ],
)
def test_only_a_boolean_chooses_ai_configurator(sweep: Any, is_offline: bool) -> None:
    spec = a_spec({"sweep": sweep})
    assert is_offline is uses_ai_configurator(spec)
    expected = "aic-profiler" if is_offline else "dynamo-profiler"
    assert expected == a_job(spec)["metadata"]["labels"]["app"]


def test_a_model_cache_needs_a_claim_and_has_the_keys_of_each_profiler() -> None:
    assert model_cache(a_spec({"deployment": {"modelCache": {"mountPath": "/m"}}})) is None
    cached = a_spec({"deployment": {"modelCache": {"pvcName": "c"}}})
    assert ("c", "/opt/model-cache") == model_cache(cached)
    later = {"pvcName": "c", "pvcMountPath": "/m", "modelPathInPvc": "llama"}
    spec = a_spec({"deployment": {"modelCache": later}})
    assert ("c", "/m") == model_cache(spec)
    each = {**later, "mountPath": "/m", "pvcPath": "llama"}
    assert each == profiler_config(spec, "n")["deployment"]["modelCache"]


def test_results_are_saved_by_the_operators_own_image() -> None:
    _, copier = containers(a_job(a_spec(output_pvc="c"), operator_image="op:1"))
    assert "op:1" == copier["image"]
    assert ["dynamo-operator"] == copier["command"]
    first, *_, folder, container, fresh = copier["args"]
    assert ("copy-output", "/data", "profiler", "fresh") == (first, folder, container, fresh)
    _, copier = containers(a_job(a_spec(), operator_image="op:1"))
    assert "profiler" == copier["args"][-1], "old files do not count on a claim only"


@given(st.text(max_size=30))
def test_no_value_of_a_user_is_part_of_a_script(text: str) -> None:
    kubectl = {"profiling_copier_image": "bitnami/kubectl:1", "operator_image": "op:1"}
    _, plain = containers(a_job(a_spec(), **kubectl))
    _, odd = containers(a_job(a_spec({"a": text}), f"r{text}", **kubectl))
    assert "bitnami/kubectl:1" == plain["image"]
    assert plain["command"] == odd["command"]
    assert plain["args"][0] == odd["args"][0]


def test_a_job_stays_long_enough_for_its_failure_to_be_read() -> None:
    job = a_job(a_spec(ttl_seconds_after_finished=0))
    assert 60 == job["spec"]["ttlSecondsAfterFinished"]


def test_fields_of_the_user_never_override_those_of_the_operator() -> None:
    spec = a_spec(
        env=({"name": "A", "value": "1"}, {"name": "DGDR_UID", "value": "stolen"}),
        env_from=({"secretRef": {"name": "s"}},),
        labels={"team": "a", "dgdr": "stolen"},
        annotations={"note": "x"},
        node_selector={"gpu": "h100"},
        image_pull_secrets=({"name": "mine"},),
        service_account_name="own",
        priority_class_name="high",
        runtime_class_name="nvidia",
        ttl_seconds_after_finished=60,
        backoff_limit=0,
        active_deadline_seconds=600,
    )
    job = a_job(spec)
    pod = job["spec"]["template"]["spec"]
    env = {each["name"]: each.get("value") for each in containers(job)[0]["env"]}
    assert ("1", "u-1") == (env["A"], env["DGDR_UID"])
    assert [{"secretRef": {"name": "s"}}] == containers(job)[0]["envFrom"]
    assert {"team": "a", "dgdr": "r"}.items() <= job["metadata"]["labels"].items()
    assert [{"name": "nvcr-imagepullsecret"}, {"name": "mine"}] == pod["imagePullSecrets"]
    classes = ("serviceAccountName", "priorityClassName", "runtimeClassName")
    assert ["own", "high", "nvidia"] == [pod[each] for each in classes]
    limits = ("ttlSecondsAfterFinished", "backoffLimit", "activeDeadlineSeconds")
    assert [60, 0, 600] == [job["spec"][each] for each in limits]
    assert "3" == job["metadata"]["annotations"]["dgdr.nvidia.com/generation"]


def test_addresses_are_given_only_if_the_operator_has_them() -> None:
    env = {each["name"] for each in containers(a_job(a_spec()))[0]["env"]}
    assert not {"NATS_SERVER", "ETCD_ENDPOINTS"} & env
    set_ = a_job(a_spec(), nats_address="nats://n:4222", etcd_address="e:2379")
    env_ = {each["name"]: each.get("value") for each in containers(set_)[0]["env"]}
    assert ("nats://n:4222", "e:2379") == (env_["NATS_SERVER"], env_["ETCD_ENDPOINTS"])


@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?", fullmatch=True))
def test_the_jobs_name_fits_into_a_label_of_its_pods(name: str) -> None:
    job = a_job(a_spec(), name)
    assert len(job["metadata"]["name"]) <= 63
    assert len(job["metadata"]["labels"]["dgdr"]) <= 63
