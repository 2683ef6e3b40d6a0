"""Warnings name what is valid and probably unintended, and nothing else."""

import time
from typing import Any

import msgspec
import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.graph.status import configuration_warning
from dynamo_operator.graph.validate import graph_inoperative
from dynamo_operator.graph.warnings import ClusterContext
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Condition, Object
from reviews.asking import verdict
from reviews.rows import POD, component, graph, request, with_service, worker
from specs import a_graph

GPU: Object = {"resources": {"limits": {"gpu": "1"}}}
W = "spec.services.w"


def warned(new: Object, **context: Any) -> tuple[str, ...]:
    """The warnings about an object that exists."""
    decision = verdict(new, new, cluster=ClusterContext(**context))
    assert decision.allowed, decision.problems
    return decision.warnings


def pod(image: str) -> Object:
    return {"extraPodSpec": {"mainContainer": {"image": image, "args": ["run"]}}}


@pytest.mark.parametrize(
    "image", ["r/x:1", "r:5000/x:1", "x@sha256:abc", "r/x:latest@sha256:abc", "r/x:v1.2-latest"]
)
def test_an_image_with_a_version_is_fine(image: str) -> None:
    assert () == warned(with_service(**pod(image)))


VERSION = 'the tag of image "{}" is not a version: operators of Dynamo 1.x do not create the graph'


@pytest.mark.parametrize("image", ["r/x:1.2.0", "r:5000/x:v0.9.0-rc.1@sha256:abc", "x:V10.0.1+cuda"])
def test_a_new_graph_has_images_of_a_version(image: str) -> None:
    assert () == verdict(with_service(**pod(image))).warnings


@pytest.mark.parametrize("image", ["r/x:1", "r/x:1.2", "r/x:my-tag", "r/x:01.2.3", "r:5000/x@sha256:abc"])
def test_a_new_graph_with_an_image_of_no_version_is_accepted_with_a_warning(image: str) -> None:
    decision = verdict(with_service(**pod(image)))
    assert decision.allowed
    assert any(VERSION.format(image) in warning for warning in decision.warnings)
    assert () == verdict(with_service(runtimeVersionOverride="1.2.3", **pod(image))).warnings


PLACEHOLDERS = [
    "${IMAGE}",
    "registry.example.com/${IMAGE}",
    "r/x:${VERSION}",
    "$REGISTRY/x:1",
    "<your-registry>/x:1",
    "r/x:<tag>",
    "{{ .Values.image }}",
    "r/{name}:1",
]


@pytest.mark.parametrize("image", PLACEHOLDERS)
def test_a_placeholder_is_no_image(image: str) -> None:
    side = {**POD, "initContainers": [{"name": "i", "image": image}]}
    for new in (
        with_service(**pod(image)),
        with_service(extraPodSpec=side),
        component(**pod(image)),
        request(profilingConfig={"profilerImage": image}),
        request(deploymentOverrides={"workersImage": image}),
    ):
        (problem,) = verdict(new).problems
        assert f'"{image}" is not an image reference' in str(problem)
        assert str(problem).endswith("is a placeholder")


def test_a_stored_placeholder_blocks_no_other_change() -> None:
    before, after = with_service(**pod("<x>/y:1")), with_service(**pod("<x>/y:1"), replicas=3)
    decision = verdict(after, before)
    assert decision.allowed
    assert any("is a placeholder (as before)" in warning for warning in decision.warnings)
    assert not verdict(with_service(**pod("<z>/y:1")), before).allowed


@pytest.mark.parametrize(
    ("written", "meant"), [("fronted", "frontend"), ("Worker", "worker"), ("decoder", "decode")]
)
def test_a_type_that_is_spelt_nearly_like_one_with_a_meaning_is_reported(written: str, meant: str) -> None:
    (text,) = warned(with_service(componentType=written))
    assert text.startswith(f'{W}.componentType: unknown componentType "{written}"')
    assert f'did you mean "{meant}"?' in text


@pytest.mark.parametrize("written", ["router", "base", "processor", "main", "worker"])
def test_a_type_of_ones_own_is_fine(written: str) -> None:
    assert not any("componentType" in text for text in warned(with_service(componentType=written)))


@pytest.mark.parametrize("image", ["x", "r:5000/x", "r/x:latest"])
def test_an_image_that_may_change_is_reported(image: str) -> None:
    (text,) = warned(with_service(**pod(image)))
    assert text.startswith(f'{W}.extraPodSpec.mainContainer.image: image "{image}"')


def test_gpus_that_are_only_requested_are_reported() -> None:
    (text,) = warned(with_service(resources={"requests": {"gpu": "2"}}))
    assert text.startswith(f"{W}.resources.requests.gpu: ")
    assert () == warned(with_service(resources={"requests": {"gpu": "2"}, "limits": {"gpu": "2"}}))


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"periodSeconds": 5, "failureThreshold": 2}, 1),
        ({"periodSeconds": 5, "failureThreshold": 3}, 0),
        ({"periodSeconds": 4}, 1),
        ({}, 0),
    ],
)
def test_a_hasty_liveness_probe_of_a_gpu_worker_is_reported(numbers: Object, expected: int) -> None:
    probe = {"httpGet": {"path": "/live", "port": 9090}, **numbers}
    assert expected == len(warned(with_service(livenessProbe=probe, **GPU)))
    assert () == warned(with_service(livenessProbe=probe))
    main = {**POD["mainContainer"], "livenessProbe": probe}
    assert expected == len(warned(with_service(extraPodSpec={"mainContainer": main}, **GPU)))


def test_another_service_account_is_reported() -> None:
    (text,) = warned(with_service(extraPodSpec={**POD, "serviceAccountName": "mine"}))
    assert text.startswith(f"{W}.extraPodSpec.serviceAccountName: overrides")


def test_missing_objects_are_reported_only_if_the_cluster_is_known() -> None:
    new = with_service(modelRef={"name": "m"})
    assert () == warned(new)
    assert () == warned(new, base_models={"m"})
    assert 1 == len(warned(new, base_models=set()))


@pytest.mark.parametrize(("replicas", "factor", "warns"), [(6, 3, True), (2, 3, False), (5, 1, False)])
def test_a_worker_without_its_adapter_is_multiplied_again(replicas: int, factor: int, warns: bool) -> None:
    before = worker(replicas=6, scalingAdapter={"enabled": True})
    old, new = (graph({"w": one}, replicas=factor) for one in (before, worker(replicas=replicas)))
    assert (True, warns) == ((decision := verdict(new, old)).allowed, bool(decision.warnings))


STRATEGY, SURGE = "nvidia.com/deployment-strategy", "nvidia.com/deployment-rolling-update-max-surge"
NODES: Object = {
    "multinode": {"nodeCount": 2},
    "extraPodSpec": {"mainContainer": {"image": "r/x:1", "args": ["run"]}},
}


@pytest.mark.parametrize(
    ("service", "warning"),
    [
        ({"annotations": {STRATEGY: "recreate"}}, 'did you mean "Recreate"?'),
        ({"annotations": {STRATEGY: "OnDelete"}}, "expected Recreate or RollingUpdate"),
        ({"annotations": {STRATEGY: "Recreate", SURGE: "1"}}, "with Recreate"),
        (
            {"annotations": {STRATEGY: "Recreate"}, "extraPodMetadata": {"annotations": {SURGE: "1"}}},
            "with Recreate",
        ),
        ({"annotations": {STRATEGY: "Recreate"}, **NODES}, "on a multinode component"),
    ],
)
def test_an_update_strategy_without_effect_is_reported(service: Object, warning: str) -> None:
    (text,) = warned(with_service(**service))
    assert warning in text


@pytest.mark.parametrize(
    "given", [{STRATEGY: "Recreate"}, {STRATEGY: "RollingUpdate", SURGE: "1"}, {SURGE: "1"}, {STRATEGY: ""}]
)
def test_an_update_strategy_with_an_effect_is_fine(given: dict[str, str]) -> None:
    assert () == warned(with_service(annotations=given))


def test_a_pvc_of_others_that_is_missing_and_one_of_a_single_node_for_several_pods_are_reported() -> None:
    claim = {"name": "m", "create": True, "storageClass": "s", "size": "1Gi"}
    shared, single = ({**claim, "volumeAccessMode": f"ReadWrite{mode}"} for mode in ("Many", "Once"))
    mounted = worker(volumeMounts=[{"name": "m", "mountPoint": "/m"}])
    several = {"w": {**mounted, "replicas": 2}}
    assert () == warned(graph(several, pvcs=[shared]), claims=set())
    (text,) = warned(graph(several, pvcs=[{"name": "m"}]), claims=set())
    assert text.startswith('spec.pvcs[0].name: PersistentVolumeClaim "m" not found')
    (text,) = warned(graph(several, pvcs=[single]))
    assert text.startswith(f'{W}.volumeMounts[0].name: PVC "m" is ReadWriteOnce, but 2 pods mount it')
    assert () == warned(graph({"w": mounted}, pvcs=[single]))


def test_components_of_a_graph_get_no_warnings() -> None:
    owner = {"kind": "DynamoGraphDeployment", "name": "chat", "uid": "u", "controller": True}
    own = component(autoscaling={"enabled": False}, dynamoNamespace="lab-chat")
    assert 1 == len(warned(own))
    own["metadata"]["ownerReferences"] = [owner]
    assert () == warned(own)


SHELL = ["/bin/sh", "-c"]
NODES_INOPERATIVE: Object = {"multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": "8"}}}
VLLM = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--model", "m"]}
PORT = {"name": "system", "containerPort": 9090}


def service(main: Object, kind: str = "worker", **more: Any) -> Object:
    main = {"image": "r/x:1", **main}
    return {"componentType": kind, "extraPodSpec": {"mainContainer": main}, **more}


def warnings_of(one: Object, framework: str | None = None) -> list[str]:
    named = {"backendFramework": framework} if framework else {}
    return [str(warning) for warning in graph_inoperative(a_graph({"w": one}, **named))]


LORAS: Object = {"envs": [{"name": "DYN_LORA_ENABLED", "value": "true"}]}


def way(**fields: Any) -> Object:
    return service({"args": ["run"]}, ingress={"enabled": True, **fields})


WRONG = [
    (service({}), "neither command nor args"),
    (service({}, "planner"), "neither command nor args"),
    (service({}, "router"), "neither command nor args"),
    (service({"command": SHELL}), "no arguments"),
    (service({"args": ["--model", "m"]}), "or backendFramework to start its engine"),
    (service({"args": ["--port", "1"]}, "planner"), 'cannot run the flag "--port" as a script'),
    (service({"command": SHELL, "args": ["--model", "m"]}), "set command"),
    (service({"command": ["python3"], "args": ["--model", "m"]}), "does not accept the flag"),
    (service({"command": ["python3"], "args": ["--router-mode"]}, "frontend"), "does not accept"),
    (service({"args": ["kv"]}, "frontend"), 'args replace "-m dynamo.frontend"'),
    (service({"args": ["python3 -m dynamo.frontend"]}, "frontend"), "args replace"),
    (service({**VLLM, "args": ["--model m --tp 2"]}), "is one argument"),
    (service({"args": ["run"], "ports": [{"containerPort": 9090}]}), 'missing port "system"'),
    (service({"ports": [{"name": "api", "containerPort": 8000}]}, "frontend"), 'missing port "http"'),
    (
        service({"command": ["python3", "-m", "dynamo.global_planner"]}, "default"),
        'only a service with componentType "planner"',
    ),
    (service(VLLM, **LORAS), "no API for LoRAs without --enable-lora"),
    (service(VLLM, **NODES_INOPERATIVE), "each of the 2 nodes runs a separate server"),
    (
        service({"command": ["bash", "-c", "python3 -m dynamo.sglang"]}, **NODES_INOPERATIVE),
        "from command to args",
    ),
    (way(host="h"), "no Ingress is created without a class"),
    (way(host="h", useVirtualService=True), "no VirtualService is created without a gateway"),
    (
        way(host="h", useVirtualService=True, virtualServiceGateway="", ingressControllerClassName="n"),
        "ingress.virtualServiceGateway: no VirtualService is created",
    ),
    (way(host="h.example.org", ingressControllerClassName="n"), '"h.example.org.local"'),
]

FINE = [
    service({"command": ["python3", "-m", "planner_sla"]}, "planner"),
    service({**VLLM, "args": ["--enable_lora"]}, **LORAS),
    service({**VLLM, "args": ["--config", "engine.yaml"]}, **LORAS),
    service({"command": ["python3", "-m", "dynamo.mocker"]}, **LORAS),
    service({"args": ["run"]}),
    service({"command": ["run"]}),
    service({"command": [*SHELL, "run"]}),
    service({"command": SHELL, "args": ["run"]}),
    service({}, "frontend"),
    service({"args": ["--router-mode", "kv"]}, "frontend"),
    service({"args": ["-m", "dynamo.frontend"]}, "frontend"),
    service({"args": ["/app/frontend.py"]}, "frontend"),
    service({"command": ["python3"], "args": ["-m", "own"]}, "frontend"),
    service({"command": ["python3"], "args": ["--version"]}),
    service(VLLM),
    service({**VLLM, "args": ["--model", "m", "--json", '{"a": 1, "--b": 2}', "--json={'a': 1}"]}),
    service({"args": ["run"], "ports": [PORT]}),
    service({"args": ["run"], "ports": [{"name": "own", "containerPort": 1}]}, "router"),
    service({**VLLM, "args": ["--tensor-parallel-size", "16"]}, **NODES_INOPERATIVE),
    service({**VLLM, "args": ["--data-parallel-size=16"]}, **NODES_INOPERATIVE),
    service({"command": ["python3", "-m", "dynamo.sglang"]}, **NODES_INOPERATIVE),
    way(host="h", ingressControllerClassName="n"),
    way(host="h", useVirtualService=True, virtualServiceGateway="istio-system/public"),
    way(host="h.a", hostSuffix="b", ingressControllerClassName="n"),
    service({"args": ["run"]}, ingress={"enabled": False, "host": "a.b"}),
]


@pytest.mark.parametrize(("one", "expected"), WRONG)
def test_what_cannot_work_is_reported(one: Object, expected: str) -> None:
    (text,) = warnings_of(one)
    assert expected in text
    assert text.startswith("spec.services.w.")


@pytest.mark.parametrize("one", FINE)
def test_a_valid_service_has_no_warnings(one: Object) -> None:
    assert [] == warnings_of(one)


def test_flags_of_a_named_engine_are_fine() -> None:
    assert [] == warnings_of(service({"args": ["--model", "m"]}), "vllm")


def test_probes_of_ones_own_need_no_named_port() -> None:
    probe = {"httpGet": {"path": "/", "port": 9090}}
    main = {"args": ["run"], "ports": [{"containerPort": 9090}], "startupProbe": probe}
    assert [] == warnings_of(service(main, livenessProbe=probe, readinessProbe=probe))
    assert 1 == len(warnings_of(service({**main, "startupProbe": {"periodSeconds": 1}})))


def test_admission_warns_of_graphs_and_components() -> None:
    pod = {"mainContainer": {"image": "r/x:1"}}
    for new, path in (
        (with_service(extraPodSpec=pod), "spec.services.w."),
        (component(extraPodSpec=pod), "spec."),
    ):
        (warning,) = warned(new)
        assert warning.startswith(f"{path}extraPodSpec.mainContainer")
        assert "neither command nor args" in warning


def test_a_change_of_a_pvc_that_exists_is_without_effect() -> None:
    former = {
        "name": "m",
        "create": True,
        "size": "1Gi",
        "storageClass": "a",
        "volumeAccessMode": "ReadWriteOnce",
    }
    for claim, fields in (
        (former, []),
        ({**former, "retain": True}, []),
        ({**former, "size": "2Gi", "storageClass": "b"}, ["size", "storageClass"]),
        ({**former, "volumeAccessMode": "ReadWriteMany"}, ["volumeAccessMode"]),
        ({**former, "name": "other", "size": "2Gi"}, []),
    ):
        decision = verdict(graph(pvcs=[claim]), graph(pvcs=[former]))
        kept = 'PVC "m" keeps what it was created with: the operator changes no PVC'
        expected = [f"spec.pvcs[0].{field}: {kept}" for field in fields]
        assert expected == [text for text in decision.warnings if text.startswith("spec.pvcs")]


def test_what_objects_keep_is_a_condition_in_the_words_of_the_graph() -> None:
    kept = [Problem("spec.services.w.minAvailable", "PodCliqueSet chat keeps the minimum 1")]
    for is_later, field in ((False, "services.w"), (True, "components[w]")):
        (found,) = configuration_warning(stored(service({"args": ["run"]})), kept=kept, is_later=is_later)
        assert f"spec.{field}.minAvailable: PodCliqueSet chat keeps the minimum 1" == found.message


def test_a_virtual_service_that_is_not_created_for_want_of_istio_is_named() -> None:
    graph = stored(way(host="h", useVirtualService=True, virtualServiceGateway="istio-system/public"))
    assert () == configuration_warning(graph)
    (warned,) = configuration_warning(graph, istio_served=False)
    assert "spec.services.w.ingress.useVirtualService: no VirtualService is" in warned.message


def test_conditions_have_the_words_of_the_version_that_was_written() -> None:
    graph = stored({**service({}), "resources": {"limits": {"gpuType": "gpu.intel.com/xe"}}})
    for is_later, field in ((False, "services.w.extraPodSpec"), (True, "components[w].podTemplate.spec.")):
        (warned,) = configuration_warning(graph, is_later=is_later)
        assert f"spec.{field}" in warned.message
        assert is_later != ("extraPodSpec" in warned.message)


def stored(one: Object, *conditions: Condition) -> DynamoGraphDeployment:
    return msgspec.structs.replace(
        a_graph({"w": one}), status=DynamoGraphDeploymentStatus(conditions=conditions)
    )


def test_a_configuration_warning_is_a_condition_until_it_is_corrected() -> None:
    (warned,) = configuration_warning(stored(service({})))
    assert ("ConfigurationWarning", "True") == (warned.type, warned.status)
    assert "neither command nor args" in warned.message
    (corrected,) = configuration_warning(stored(service({"args": ["run"]}), warned))
    assert ("False", "no_warning") == (corrected.status, corrected.reason)


def test_many_services_with_much_to_say_give_one_short_message() -> None:
    (warning,) = configuration_warning(a_graph({f"w{number}": service({}) for number in range(25)}))
    assert len(warning.message) <= 1024


@pytest.mark.parametrize("piece", ["--a ", "-tp 1 ", "python3 ", "'", "$(a)", "x=1 --"])
def test_warnings_take_time_linear_in_the_arguments(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    began = time.process_time()
    warnings_of(service({**VLLM, "args": [text, "--x " + text]}, **NODES_INOPERATIVE), "vllm")
    warnings_of(service({"args": [text]}, "frontend"))
    assert time.process_time() - began < 5
