"""Volumes of a graph: the user journeys of PVCs and caches."""

import json

import pytest

from cluster.conditions import condition
from cluster.journeys.user import GRAPH, User, graph_manifest, main, variables
from kube_runtime.kind import Object
from kube_runtime.types.kinds import PersistentVolumeClaim

pytestmark = pytest.mark.cluster

CLAIM = PersistentVolumeClaim.KIND


def with_claim(name: str, claim: str) -> str:
    return graph_manifest(
        f"""
        pvcs: [{claim}]
        services:
          Frontend: &service
            componentType: frontend
            volumeMounts: [{{name: models, mountPoint: /models}}]
            extraPodSpec: {{mainContainer: {{image: "reg.example.com/vllm-runtime:1.0"}}}}
          Worker: {{<<: *service, componentType: worker}}
        """,
        name,
    )


MADE = "{create: true, name: models, size: 10Gi, storageClass: standard, volumeAccessMode: ReadWriteMany}"


def test_j16_storage_that_the_graph_makes(user: User) -> None:
    user.apply(with_claim("made", MADE))
    claim = user.world.eventually(CLAIM, "models")
    assert ["made"] == [each["name"] for each in claim["metadata"]["ownerReferences"]]
    for name in ("made-frontend", "made-worker"):
        pod = user.pod(name)
        volume = {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}
        assert volume in pod["volumes"]
        assert {"name": "models", "mountPath": "/models"} in main(pod)["volumeMounts"]


def test_j16_storage_that_is_missing(user: User) -> None:
    """The graph is `pending`, not `failed`: deviation K1. Nothing in it has to be corrected."""
    user.apply(with_claim("waits", "{name: models}"))
    waiting = user.says("waits", "models not found")
    assert "pending" == waiting["status"]["state"]
    user.create(a_claim("models"))
    for name in ("waits-frontend", "waits-worker"):
        assert {"name": "models", "mountPath": "/models"} in main(user.pod(name))["volumeMounts"]
    user.world.until(lambda: "not found" not in ready_message(user, "waits"))
    assert "ownerReferences" not in user.world.eventually(CLAIM, "models")["metadata"]
    words = user.refused(manifest=with_claim("sizeless", "{create: true, name: other}"))
    assert "When create is true, size, storageClass, and volumeAccessMode are required" in words


def ready_message(user: User, name: str) -> str:
    return str(condition(user.world.eventually(GRAPH, name)).get("message", ""))


def a_claim(name: str) -> Object:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    about = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}}
    return {**about, "spec": spec}


def test_j17_model_cache(user: User) -> None:
    user.create(a_claim("s3-model"))
    manifest = graph_manifest("""
        pvcs: [{name: s3-model}]
        services:
          Frontend:
            componentType: frontend
            extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
          Worker:
            componentType: worker
            envs: [{name: HF_HOME, value: /model}]
            volumeMounts: [{name: s3-model, mountPoint: /model}]
            extraPodSpec:
              affinity: &affinity
                nodeAffinity:
                  preferredDuringSchedulingIgnoredDuringExecution:
                    - weight: 1
                      preference: {matchExpressions: [{key: fluid.io/s3, operator: Exists}]}
              mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}
        """)
    user.apply(manifest)
    worker, frontend = user.pod("chat-worker"), user.pod("chat-frontend")
    assert {"name": "s3-model", "mountPath": "/model"} in main(worker)["volumeMounts"]
    assert "/model" == variables(worker)["HF_HOME"]
    assert "nodeAffinity" in worker["affinity"]
    assert "s3-model" not in json.dumps(frontend)
    assert "HF_HOME" not in variables(frontend)
    assert "affinity" not in frontend


def cached(framework: str, extra: str = "") -> str:
    return graph_manifest(
        f"""
        backendFramework: {framework}
        pvcs:
          - {{create: true, name: cache, size: 1Gi, storageClass: fast,
             volumeAccessMode: ReadWriteMany}}
        services:
          Worker:
            componentType: worker
            volumeMounts: [{{name: cache, useAsCompilationCache: true}}]
            extraPodSpec: {{mainContainer: {{image: "reg.example.com/runtime:1.0"}}}}
            {extra}
        """,
        framework,
    )


def test_j18_compilation_cache(user: User) -> None:
    """A mistake is refused when it is applied: no user has to search for a reconcile error."""
    user.apply(cached("vllm"))
    worker = user.pod("vllm-worker")
    assert {"name": "cache", "mountPath": "/root/.cache/vllm"} in main(worker)["volumeMounts"]
    assert "/root/.cache/vllm" == variables(worker)["VLLM_CACHE_ROOT"]
    words = user.refused(manifest=cached("sglang"))
    assert "volumeMounts[0].mountPoint: missing mount point, because sglang has no default" in words


@pytest.mark.parametrize(
    ("said", "size"), [("", "8Gi"), ("{size: 16Gi}", "16Gi"), ("{disabled: true}", None)]
)
def test_j18_shared_memory(user: User, said: str, size: str | None) -> None:
    user.apply(cached("vllm", f"sharedMemory: {said}" if said else ""))
    worker = user.pod("vllm-worker")
    mounts = [
        each["name"]
        for each in main(worker)["volumeMounts"]
        if each["mountPath"] == "/dev/shm"  # noqa: S108  # the path of shared memory
    ]
    sizes = [each["emptyDir"]["sizeLimit"] for each in worker["volumes"] if each["name"] in mounts]
    assert ([size] if size else []) == sizes


def test_j18_shared_memory_without_a_size(user: User) -> None:
    words = user.refused(manifest=cached("vllm", "sharedMemory: {}"))
    assert "sharedMemory" in words
