"""Warnings name what is valid and probably unintended, and nothing else."""

from typing import Any

import pytest

from dynamo_operator.graph.warnings import ClusterContext
from kube_runtime.kind import Object
from reviews.asking import verdict
from reviews.rows import POD, component, graph, request, with_service, worker

GPU: Object = {"resources": {"limits": {"gpu": "1"}}}
W = "spec.services.w"


def warned(new: Object, **context: Any) -> tuple[str, ...]:
    decision = verdict(new, cluster=ClusterContext(**context))
    assert decision.allowed, decision.problems
    return decision.warnings


def pod(image: str) -> Object:
    return {"extraPodSpec": {"mainContainer": {"image": image, "args": ["run"]}}}


@pytest.mark.parametrize(
    "image", ["r/x:1", "r:5000/x:1", "x@sha256:abc", "r/x:latest@sha256:abc", "r/x:v1.2-latest"]
)
def test_an_image_with_a_version_is_fine(image: str) -> None:
    assert () == warned(with_service(**pod(image)))


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
def test_a_type_that_is_spelt_nearly_like_one_with_a_meaning_is_reported(
    written: str, meant: str
) -> None:
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


def test_the_default_probe_is_not_spoken_of() -> None:
    assert () == warned(with_service(**GPU))


def test_another_service_account_is_reported() -> None:
    (text,) = warned(with_service(extraPodSpec={**POD, "serviceAccountName": "mine"}))
    assert text.startswith(f"{W}.extraPodSpec.serviceAccountName: overrides")


def test_missing_objects_are_reported_only_if_the_cluster_is_known() -> None:
    new = with_service(modelRef={"name": "m"})
    assert () == warned(new)
    assert () == warned(new, base_models={"m"})
    assert 1 == len(warned(new, base_models=set()))


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
            {
                "annotations": {STRATEGY: "Recreate"},
                "extraPodMetadata": {"annotations": {SURGE: "1"}},
            },
            "with Recreate",
        ),
        ({"annotations": {STRATEGY: "Recreate"}, **NODES}, "on a multinode component"),
    ],
)
def test_an_update_strategy_without_effect_is_reported(service: Object, warning: str) -> None:
    (text,) = warned(with_service(**service))
    assert warning in text


@pytest.mark.parametrize(
    "given",
    [
        {STRATEGY: "Recreate"},
        {STRATEGY: "RollingUpdate", SURGE: "1"},
        {SURGE: "1"},
        {STRATEGY: ""},
    ],
)
def test_an_update_strategy_with_an_effect_is_fine(given: dict[str, str]) -> None:
    assert () == warned(with_service(annotations=given))


def test_a_claim_that_the_graph_makes_need_not_be_there() -> None:
    claim = {"name": "m", "create": True, "storageClass": "s", "size": "1Gi"}
    mounts = [{"name": "m", "mountPoint": "/m"}]
    many = {**claim, "volumeAccessMode": "ReadWriteMany"}
    services = {"w": worker(volumeMounts=mounts, replicas=2)}
    assert () == warned(graph(services, pvcs=[many]), claims=set())
    (text,) = warned(graph(services, pvcs=[{"name": "m"}]), claims=set())
    assert text.startswith('spec.pvcs[0].name: PersistentVolumeClaim "m" not found')


def test_a_single_node_pvc_for_several_pods_is_reported() -> None:
    claim = {
        "name": "m",
        "create": True,
        "storageClass": "s",
        "size": "1Gi",
        "volumeAccessMode": "ReadWriteOnce",
    }
    mounts = [{"name": "m", "mountPoint": "/m"}]
    (text,) = warned(graph({"w": worker(volumeMounts=mounts, replicas=2)}, pvcs=[claim]))
    assert text.startswith(
        f'{W}.volumeMounts[0].name: PVC "m" is ReadWriteOnce, but 2 pods mount it'
    )
    assert () == warned(graph({"w": worker(volumeMounts=mounts)}, pvcs=[claim]))


def test_components_of_a_graph_get_no_warnings() -> None:
    owner = {"kind": "DynamoGraphDeployment", "name": "chat", "uid": "u", "controller": True}
    own = component(autoscaling={"enabled": False}, dynamoNamespace="lab-chat")
    assert 1 == len(warned(own))
    own["metadata"]["ownerReferences"] = [owner]
    assert () == warned(own)
