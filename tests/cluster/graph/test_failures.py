"""Forty failures of graphs, each caused: the first line of `dynamoctl why` is the cause, the next what to do.

The API server, its controllers and the scheduler are real. What only a kubelet or a driver for storage would
write, the test writes as they do, with their true texts.

With WRITE_DOCS=1 it writes what `why` said, and after how many seconds, into docs/why.md, which is otherwise
left alone: no test depends on how quick a machine is.
"""

import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.world import EVENTS, GRAPH, NAMESPACES, PATIENCE_SECONDS, PODS, QUOTAS, World
from dynamo_graphs import Cluster
from kube_runtime.times import rfc3339
from kube_runtime.types.kinds import PersistentVolumeClaim, Service, ServiceAccount
from kube_runtime.types.meta import Kind, Object

# What only a client imports and compiles, once, takes longer than a step of an operator may.
pytestmark = [pytest.mark.cluster, pytest.mark.stalls, pytest.mark.usefixtures("operator")]

PAGE = Path(__file__).parents[3] / "docs/why.md"
HEAD = """\
# How soon a cause is known

<!-- Written by `WRITE_DOCS=1 pytest tests/cluster/graph/test_failures.py`. Do not edit. -->

{count} failures, each caused on a local control plane: the first line of `dynamoctl why`, the first remedy
below it, and the seconds until `why` had answered so, counted from `kubectl apply`, or from the moment when a
kubelet would have reported it. Four graphs at a time, one operator, two cores; kubelets are simulated.
[Failure modes](failure-modes.md#what-kubectl-shows) has more messages.

| failure | first line of `why` | what to do | seconds |
|---|---|---|---:|
"""
AT_ONCE = 4
LONGEST_CELL = 300
_PAUSE_SECONDS = 0.2 if os.environ.get("WRITE_DOCS") == "1" else 1.0  # the page has tenths of seconds
LIMIT_RANGES = Kind("", "v1", "LimitRange", "limitranges")

Act = Callable[[World], object]


def created(kind: Kind, body: Object) -> Act:
    """Have another user create an object first."""
    return lambda world: world.create(kind, body)


def quota(**hard: str) -> Act:
    return created(QUOTAS, {"metadata": {"name": "limit"}, "spec": {"hard": hard}})


def limit_range(**limits: object) -> Act:
    spec = {"limits": [{"type": "Container", **limits}]}
    return created(LIMIT_RANGES, {"metadata": {"name": "limits"}, "spec": spec})


def enforced(level: str) -> Act:
    """Have the namespace enforce a Pod Security Standard."""
    label = {"pod-security.kubernetes.io/enforce": level}
    return lambda world: world.patch(NAMESPACES, world.namespace, {"metadata": {"labels": label}})


def the_pod(world: World) -> Object:
    """The worker's pod, once it is on a node."""

    def placed() -> Object | None:
        pods = [pod for pod in world.list(PODS) if "-decode-" in pod["metadata"]["name"]]
        return next((pod for pod in pods if pod["spec"].get("nodeName")), None)

    found: Object = world.until(placed)
    return found


def kubelet(*, state: Object, last: Object | None = None, ready: bool = False, started: bool = False) -> Act:
    """Write the status of the worker's container as a kubelet does."""

    def act(world: World) -> None:
        pod = the_pod(world)
        container = pod["spec"]["containers"][0]
        status = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": ready,
            "started": started,
            "restartCount": 3 if last else 0,
            "state": state,
            **({"lastState": last} if last else {}),
        }
        conditions = [
            *pod["status"].get("conditions", ()),
            *(
                {
                    "type": it,
                    "status": "False",
                    "reason": "ContainersNotReady",
                    "lastTransitionTime": rfc3339(),
                }
                for it in ("Ready", "ContainersReady")
            ),
        ]
        body = {"phase": "Pending", "conditions": conditions, "containerStatuses": [status]}
        world.patch(PODS, pod["metadata"]["name"], {"status": body}, subresource="status")

    return act


def waiting(reason: str, message: str) -> Act:
    return kubelet(state={"waiting": {"reason": reason, "message": message}})


def crashing(message: str, code: int = 1, reason: str = "Error") -> Act:
    """The container waits for its next restart; the end of its log is its termination message."""
    ended = {"exitCode": code, "reason": reason, "message": message, "finishedAt": rfc3339()}
    back_off = "back-off 40s restarting failed container=main pod=chat-decode"
    return kubelet(
        state={"waiting": {"reason": "CrashLoopBackOff", "message": back_off}}, last={"terminated": ended}
    )


_numbers = count()


def event(reason: str, message: str, *, of_claim: bool = False, before: Act = lambda _: None) -> Act:
    """Write an Event about the worker's pod, or about the PVC `weights`, as a kubelet or a driver does."""

    def act(world: World) -> None:
        before(world)
        kind = PersistentVolumeClaim.KIND if of_claim else PODS
        about = world.eventually(kind, "weights") if of_claim else the_pod(world)
        reference = {
            "apiVersion": "v1",
            "kind": kind.name,
            "namespace": world.namespace,
            "name": about["metadata"]["name"],
            "uid": about["metadata"]["uid"],
        }
        world.create(
            EVENTS,
            {
                "metadata": {"name": f"failure-{next(_numbers)}"},
                "involvedObject": reference,
                "reason": reason,
                "message": message,
                "type": "Warning",
                "firstTimestamp": rfc3339(),
                "lastTimestamp": rfc3339(),
                "count": 1,
                "source": {"component": "kubelet"},
            },
        )

    return act


def evicted(message: str) -> Act:
    """The worker's pod has failed as one that a kubelet evicts."""

    def act(world: World) -> None:
        name = the_pod(world)["metadata"]["name"]
        status = {"phase": "Failed", "reason": "Evicted", "message": message}
        world.patch(PODS, name, {"status": status}, subresource="status")

    return act


def with_worker(**fields: object) -> Object:
    return graph(Frontend=service("frontend"), Decode=worker("decode", **fields))


def behaving(how: str) -> Object:
    """Such a graph whose worker's pods behave so."""
    return with_worker(extraPodMetadata={"annotations": {"fake-kubelet": how}})


def with_pod(**fields: object) -> Object:
    body = with_worker()
    body["spec"]["services"]["Decode"]["extraPodSpec"] |= fields
    return body


def noted(**annotations: str) -> Object:
    body = with_worker()
    named = {f"nvidia.com/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {**body, "metadata": {"name": "chat", "annotations": named}}


def by_hand(**fields: object) -> Object:
    """Such a graph whose worker's pods no simulated kubelet touches."""
    return with_worker(extraPodMetadata={"annotations": {"fake-kubelet": "never-starts"}}, **fields)


def with_claim(**claim: object) -> Object:
    """Such a graph whose worker mounts a PVC."""
    body = with_worker(volumeMounts=[{"name": "weights", "mountPoint": "/weights"}])
    return {**body, "spec": {**body["spec"], "pvcs": [{"name": "weights", **claim}]}}


def new_claim(**fields: object) -> Object:
    return with_claim(create=True, size="1Gi", volumeAccessMode="ReadWriteOnce", **fields)


def with_frontend(**fields: object) -> Object:
    return graph(Frontend=service("frontend", **fields))


@dataclass(frozen=True, slots=True)
class Failure:
    """What goes wrong: what there is `before`, the graph, and what is done `after` to its objects.

    The first line of `why` must contain `cause`, and a remedy below it `remedy`.
    """

    title: str
    body: Object
    cause: str
    remedy: str
    before: Act = lambda _: None
    after: Act | None = None

    def __str__(self) -> str:
        return self.title


PICKER = {
    "config": {
        "plugins": [{"type": "single-profile-handler"}, {"type": "max-score-picker"}],
        "schedulingProfiles": [{"name": "default", "plugins": [{"pluginRef": "max-score-picker"}]}],
    }
}
TAKEN: Object = {"metadata": {"name": "chat-frontend"}, "spec": {"ports": [{"port": 80}]}}
CLAIM: Object = {
    "metadata": {"name": "weights"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
NAME = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0"
PULL = f'failed to pull and unpack image "{NAME}": failed to resolve reference "{NAME}": '
FAILURES = (
    Failure(
        "an image that does not exist",
        by_hand(),
        "The image nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0 does not exist",
        "kubectl edit dgd chat",
        after=waiting("ErrImagePull", PULL + "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0: not found"),
    ),
    Failure(
        "a registry that wants a login",
        by_hand(),
        "401 Unauthorized",
        "--docker-server=nvcr.io",
        after=waiting(
            "ErrImagePull",
            PULL + "failed to authorize: failed to fetch anonymous token: unexpected status from GET "
            "request to https://nvcr.io/proxy_auth: 401 Unauthorized",
        ),
    ),
    Failure(
        "a registry that DNS does not know",
        by_hand(),
        "cannot resolve nvcr.io",
        "kubectl edit dgd chat",
        after=waiting(
            "ErrImagePull",
            PULL + 'failed to do request: Head "https://nvcr.io/v2/x": dial tcp: lookup nvcr.io on '
            "10.0.0.10:53: no such host",
        ),
    ),
    Failure(
        "a limit of pulls",
        by_hand(),
        "limits the number of pulls",
        "docker-registry",
        after=waiting(
            "ErrImagePull",
            PULL + "unexpected status code https://nvcr.io/v2/x/manifests/1: 429 Too Many Requests - "
            "toomanyrequests: You have reached your unauthenticated pull rate limit",
        ),
    ),
    Failure(
        "an image for another processor",
        by_hand(),
        "not built for the processor",
        "kubernetes.io/arch",
        after=waiting("ErrImagePull", PULL + "no match for platform in manifest: not found"),
    ),
    Failure(
        "a name of an image that is not valid",
        by_hand(),
        "not a valid name",
        "kubectl edit dgd chat",
        after=waiting(
            "InvalidImageName",
            'Failed to apply default image tag "Repo:": couldn\'t parse image name "Repo:": invalid '
            "reference format",
        ),
    ),
    Failure(
        "an image that cannot be pulled",
        behaving("no-image"),
        "cannot be pulled",
        "kubectl describe pod chat-decode",
    ),
    Failure(
        "a Secret that does not exist",
        by_hand(),
        "The Secret hf-token-secret",
        "kubectl create secret generic hf-token-secret",
        after=waiting("CreateContainerConfigError", 'secret "hf-token-secret" not found'),
    ),
    Failure(
        "a ConfigMap that does not exist",
        by_hand(),
        "The ConfigMap engine",
        "kubectl create configmap engine",
        after=waiting("CreateContainerConfigError", 'configmap "engine" not found'),
    ),
    Failure(
        "a key that a Secret lacks",
        by_hand(),
        "has no key HF_TOKEN",
        "kubectl describe Secret hf",
        after=waiting("CreateContainerConfigError", "couldn't find key HF_TOKEN in Secret lab/hf"),
    ),
    Failure(
        "a program that the image lacks",
        by_hand(),
        "cannot start the program pyhton3",
        "command",
        after=waiting(
            "RunContainerError",
            "failed to create containerd task: failed to create shim task: OCI runtime create "
            "failed: runc create failed: unable to start container process: error during container "
            'init: exec: "pyhton3": executable file not found in $PATH',
        ),
    ),
    Failure(
        "a driver that is not loaded",
        by_hand(),
        "NVIDIA container toolkit",
        "kubectl get pods -A",
        after=waiting(
            "RunContainerError",
            "failed to create shim task: OCI runtime create failed: nvidia-container-cli: "
            "initialization error: nvml error: driver not loaded: unknown",
        ),
    ),
    Failure(
        "a volume that does not mount",
        by_hand(),
        "mount a volume",
        "file server",
        after=event(
            "FailedMount",
            'MountVolume.SetUp failed for volume "models" : mount failed: exit status 32 Output: '
            "mount.nfs: Connection timed out",
            before=waiting("ContainerCreating", ""),
        ),
    ),
    Failure(
        "a pod without an address",
        by_hand(),
        "set up the network",
        "network plugin",
        after=event(
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network "
            'for sandbox "1f": plugin type="aws-cni" failed (add): failed to assign an IP address '
            "to container",
            before=waiting("ContainerCreating", ""),
        ),
    ),
    Failure("a container that exits", behaving("crashes"), "keeps exiting", "--previous"),
    Failure(
        "out of memory",
        by_hand(),
        "OOMKilled",
        "resources.limits.memory",
        after=crashing("", 137, "OOMKilled"),
    ),
    Failure(
        "out of GPU memory",
        by_hand(),
        "ran out of GPU memory",
        "--max-model-len",
        after=crashing(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
            "total capacity of 79.15 GiB of which 1.02 GiB is free."
        ),
    ),
    Failure(
        "a context that does not fit",
        by_hand(),
        "KV cache",
        "--max-model-len",
        after=crashing(
            "ValueError: The model's max seq len (131072) is larger than the maximum number of "
            "tokens that can be stored in KV cache (39024)."
        ),
    ),
    Failure(
        "a gated model",
        by_hand(),
        "gated",
        "hf-token-secret",
        after=crashing(
            "OSError: You are trying to access a gated repo. Make sure to have access to it at "
            "https://huggingface.co/meta-llama/Llama-3.1-8B. 403 Client Error."
        ),
    ),
    Failure(
        "a model that does not exist",
        by_hand(),
        "does not find its model",
        "--model",
        after=crashing(
            "OSError: Qwen/Qwen3-0.6X is not a local folder and is not a valid model identifier "
            "listed on 'https://huggingface.co/models'"
        ),
    ),
    Failure(
        "a driver that is too old",
        by_hand(),
        "driver of node",
        "Update the driver",
        after=crashing("RuntimeError: The NVIDIA driver on your system is too old (found version 12020)."),
    ),
    Failure(
        "GPUs that do not reach each other",
        by_hand(),
        "NCCL fails",
        "NCCL_DEBUG",
        after=crashing(
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, unhandled system "
            "error, NCCL version 2.21.5"
        ),
    ),
    Failure(
        "an option that does not exist",
        by_hand(),
        "--tensor-paralel-size",
        "Correct `args`",
        after=crashing("main.py: error: unrecognized arguments: --tensor-paralel-size 2", 2),
    ),
    Failure(
        "NATS that does not answer",
        by_hand(),
        "does not reach NATS",
        "NATS_SERVER",
        after=crashing("Exception: Failed to connect to NATS: IO error: Connection refused (os error 111)."),
    ),
    Failure(
        "etcd that does not answer",
        by_hand(),
        "does not reach etcd",
        "ETCD_ENDPOINTS",
        after=crashing("Exception: Failed to connect to etcd server with config ClientOptions"),
    ),
    Failure(
        "a readiness probe that fails",
        by_hand(),
        "readiness probe fails",
        "kubectl logs chat-decode",
        after=event(
            "Unhealthy",
            "Readiness probe failed: HTTP probe failed with statuscode: 503",
            before=kubelet(state={"running": {"startedAt": "2026-01-01T00:00:00Z"}}, started=True),
        ),
    ),
    Failure(
        "a pod that a node evicts",
        by_hand(),
        "its disk was full",
        "on a PVC",
        after=evicted(
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 8Gi."
        ),
    ),
    Failure(
        "a pod that no kubelet starts",
        by_hand(),
        "the kubelet there has not started it",
        "kubectl describe node",
    ),
    Failure(
        "more GPUs than a node has",
        with_worker(resources={"limits": {"gpu": "16"}}),
        "the largest node has 8 nvidia.com/gpu",
        "nodeCount: 2",
    ),
    Failure(
        "more memory than a node has",
        with_worker(resources={"limits": {"memory": "9000Gi"}}),
        "asks for 9000Gi memory",
        "Lower `resources`",
    ),
    Failure(
        "a node selector that no node has",
        with_pod(nodeSelector={"gpu": "none"}),
        "No node has the labels",
        "kubectl get nodes --show-labels",
    ),
    Failure(
        "a scheduler that does not run",
        with_pod(schedulerName="absent-scheduler"),
        "No scheduler has acted",
        "schedulerName",
    ),
    Failure(
        "a PVC that does not exist",
        with_claim(create=False),
        "The PVC weights does not exist",
        "kubectl get pvc",
    ),
    Failure(
        "a storage class that does not exist",
        new_claim(storageClass="nowhere"),
        "the StorageClass nowhere does not exist",
        "kubectl get storageclass",
    ),
    Failure(
        "no storage class, and no default one",
        with_claim(create=False),
        "names no StorageClass",
        "kubectl get storageclass",
        before=created(PersistentVolumeClaim.KIND, CLAIM),
    ),
    Failure(
        "storage that cannot be provisioned",
        new_claim(storageClass="full"),
        "cannot provision it",
        "kubectl describe pvc weights",
        before=created(STORAGE_CLASS, {"metadata": {"name": "full"}, "provisioner": "csi.example.com"}),
        after=event(
            "ProvisioningFailed",
            'failed to provision volume with StorageClass "full": rpc error: code = '
            "ResourceExhausted desc = quota of the project is exceeded",
            of_claim=True,
        ),
    ),
    Failure(
        "a quota without room for pods",
        with_worker(),
        "The quota limit",
        "kubectl describe resourcequota limit",
        before=quota(pods="0"),
    ),
    Failure(
        "a quota that refuses a Service",
        with_worker(),
        "The quota limit",
        "kubectl describe resourcequota limit",
        before=quota(services="0"),
    ),
    Failure(
        "a quota that wants limits",
        with_worker(),
        "requires each pod to specify",
        "resources",
        before=quota(**{"limits.memory": "1Gi"}),
    ),
    Failure(
        "a LimitRange",
        with_worker(resources={"limits": {"cpu": "8", "gpu": "1"}}),
        "A LimitRange",
        "kubectl describe limitrange",
        before=limit_range(max={"cpu": "1"}),
    ),
    Failure(
        "a Pod Security Standard",
        with_worker(),
        "Pod Security Standard restricted",
        "kubectl label namespace",
        before=enforced("restricted"),
    ),
    Failure(
        "a ServiceAccount that does not exist",
        with_pod(serviceAccountName="absent"),
        "The ServiceAccount absent",
        "kubectl create serviceaccount absent",
    ),
    Failure(
        "a priority class that does not exist",
        with_pod(priorityClassName="gold"),
        "The PriorityClass gold",
        "kubectl get priorityclass",
    ),
    Failure(
        "a RuntimeClass that does not exist",
        with_pod(runtimeClassName="nvidia"),
        "The RuntimeClass nvidia",
        "kubectl get runtimeclass",
    ),
    Failure(
        "a name that another object has",
        with_worker(),
        "chat-frontend",
        "Rename",
        before=created(Service.KIND, TAKEN),
    ),
    Failure(
        "an invalid spec",
        with_frontend(ingress={"enabled": True}),
        "spec.services[Frontend].ingress.host",
        "Correct",
    ),
    Failure(
        "several nodes without an orchestrator",
        with_worker(multinode={"nodeCount": 2}),
        "orchestrator",
        "LeaderWorkerSet",
    ),
    Failure(
        "a graph that is too large",
        with_worker(envs=[{"name": "NOTES", "value": "x" * 262144}]),
        "bytes",
        "ConfigMap",
    ),
    Failure(
        "a worker that neither runs a command nor a script",
        graph(Frontend=service("frontend"), Decode=service("worker")),
        "neither command nor args",
        "",
    ),
    Failure(
        "a VirtualService without Istio",
        with_frontend(
            ingress={
                "enabled": True,
                "host": "chat",
                "useVirtualService": True,
                "virtualServiceGateway": "istio-system/public",
            }
        ),
        "no VirtualService is created",
        "",
    ),
    Failure(
        "an endpoint picker without its ClusterRole",
        graph(Frontend=service("frontend"), Epp=service("epp", eppConfig=PICKER)),
        "--epp-cluster-role-name",
        "",
    ),
    Failure("a graph that is paused", noted(paused="true"), "paused", "dynamoctl rollout resume chat"),
    Failure("a graph that is suspended", noted(suspend="true"), "zero replicas", "dynamoctl resume chat"),
    Failure(
        "services with different causes",
        graph(
            Frontend=service("frontend", extraPodMetadata={"annotations": {"fake-kubelet": "no-image"}}),
            Decode=worker("decode", resources={"limits": {"gpu": "64"}}),
        ),
        "cannot be pulled",
        "kubectl describe pod chat-frontend",
    ),
)


def known(failure: Failure, kinds: ControlPlane, namespace: str) -> tuple[float, str, str]:
    """The seconds until the first line is the cause, that line, and the remedy below it.

    Raises: AssertionError: they are not known in time; it has what `why` says instead.
    """
    world = World(kinds.server, kinds.tls, namespace)
    world.create(NAMESPACES, {"metadata": {"name": namespace, "namespace": ""}})
    try:
        world.eventually(ServiceAccount.KIND, "default")
        failure.before(world)
        begun = time.monotonic()
        world.create(GRAPH, failure.body)
        if failure.after is not None:
            failure.after(world)
            begun = time.monotonic()
        cluster, lines = Cluster(namespace=namespace, kubeconfig=kinds.kubeconfig), [""]
        seconds = 0.0
        while seconds < PATIENCE_SECONDS:
            lines = cluster.why("chat").lines
            seconds = time.monotonic() - begun
            remedies = [line for line in lines if line.startswith("→")]
            remedy = next((line for line in remedies if failure.remedy in line), "")
            if failure.cause in lines[0] and remedy:
                return seconds, lines[0], remedies[0].removeprefix("→ ")
            time.sleep(_PAUSE_SECONDS)
        raise AssertionError("\n".join((f"{failure}:", *lines)))
    finally:
        world.clear()


def test_the_first_line_of_why_is_the_cause_and_the_remedy_follows(
    kinds: ControlPlane, namespace: str
) -> None:
    assert len(FAILURES) >= 40
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [
            pool.submit(known, failure, kinds, f"{namespace}-{number}")
            for number, failure in enumerate(FAILURES)
        ]
    errors = [str(run.exception()) for run in runs if run.exception()]
    assert [] == errors, "\n\n".join(errors)
    if os.environ.get("WRITE_DOCS") == "1":
        rows = (
            f"| {failure} | {cell(cause)} | {cell(remedy)} | {seconds:.1f} |\n"
            for failure, (seconds, cause, remedy) in zip(
                FAILURES, (run.result() for run in runs), strict=True
            )
        )
        text = HEAD.format(count=len(FAILURES)) + "".join(rows)
        PAGE.write_text(re.sub(rf"{namespace}-\d+", "lab", text), encoding="utf-8")


def test_an_unschedulable_pod_is_never_passed_over(kinds: ControlPlane, world: World) -> None:
    """Also in the first seconds, in which a scheduler may still find a node."""
    world.create(GRAPH, with_worker(resources={"limits": {"gpu": "64"}}))

    def unschedulable() -> str:
        conditions = [each for pod in world.list(PODS) for each in pod["status"].get("conditions", ())]
        return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")

    world.until(unschedulable)
    cluster = Cluster(namespace=world.namespace, kubeconfig=kinds.kubeconfig)
    found = world.until(lambda: [each for each in cluster.why("chat").findings if "nschedulable" in each])
    # While a scheduler knows no node yet it says "no nodes available to schedule pods".
    assert any("available" in each and "nodes" in each for each in found)
    for _ in range(5):
        said = cluster.why("chat").findings
        assert "fit" in said[0]
        assert any("nschedulable" in each for each in said)


def cell(text: str) -> str:
    """The text for a cell of a table, its end cut off if it is long."""
    flat = " ".join(text.replace("|", "\\|").split())
    return flat if len(flat) <= LONGEST_CELL else f"{flat[:LONGEST_CELL]}…"
