"""Deploy a graph, as the journeys J-13 to J-21 of the acceptance tests tell it.

Everything is done with kubectl, and what a journey promises is looked for where a user sees it. HTTP
answers of models are not: pods are not real here.
"""

import base64
import json

import pytest

from cluster.journeys.user import DEPLOYMENT, GRAPH, User, condition, is_ready, main, variables
from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.core import PersistentVolumeClaim, Service
from dynamo_operator.kube.types.networking import Ingress

pytestmark = pytest.mark.cluster

COMPONENT = DynamoComponentDeployment.KIND
CLAIM = PersistentVolumeClaim.KIND

FIRST = """
    apiVersion: nvidia.com/v1alpha1
    kind: DynamoGraphDeployment
    metadata:
      name: vllm-agg
    spec:
      services:
        Frontend:
          componentType: frontend
          replicas: 1
          extraPodSpec: &pod {mainContainer: {image: reg.example.com/vllm-runtime:1.0}}
        VllmDecodeWorker:
          componentType: worker
          replicas: 1
          extraPodMetadata: {annotations: {fake-kubelet-delay: 2s}}
          envFromSecret: hf-token-secret
          resources: {limits: {gpu: "1"}}
          extraPodSpec:
            mainContainer:
              image: reg.example.com/vllm-runtime:1.0
              args: ["python3 -m dynamo.vllm --model Qwen/Qwen3-0.6B"]
    """


def test_j13_first_model(user: User) -> None:
    user.kubectl("create", "secret", "generic", "hf-token-secret", "--from-literal=HF_TOKEN=x")
    before = user.world.version()
    user.apply(FIRST)
    ready = user.ready("vllm-agg")
    header, row = user.columns("dgd")
    assert ("NAME", "READY", "BACKEND", "AGE", "STATE", "SERVICES", "GPUS") == header
    assert ("vllm-agg", "True") == row[:2]
    assert ("successful", "2/2", "1") == row[-3:]
    names = ["vllm-agg-frontend", "vllm-agg-vllmdecodeworker"]
    for kind in (COMPONENT, DEPLOYMENT):
        assert names == [each["metadata"]["name"] for each in user.world.list(kind)]
    service = user.world.eventually(Service.KIND, "vllm-agg-frontend")
    assert 8000 in [each["port"] for each in service["spec"]["ports"]]
    worker = main(user.pod("vllm-agg-vllmdecodeworker"))
    assert "1" == worker["resources"]["limits"]["nvidia.com/gpu"]
    assert ["/bin/sh", "-c"] == worker["command"]
    assert [{"secretRef": {"name": "hf-token-secret"}}] == worker["envFrom"]
    said = condition(ready)
    assert "successful" == ready["status"]["state"]
    assert ("all_resources_are_ready", "All resources are ready") == (
        said["reason"],
        said["message"],
    )
    seen = [each["object"] for each in user.world.changes(GRAPH, since=before)]
    pending = [each for each in seen if "pending" == each.get("status", {}).get("state")]
    assert pending
    waiting = [condition(each) for each in pending]
    assert {"some_resources_are_not_ready", "pods_not_ready"} >= {
        each["reason"] for each in waiting
    }
    assert waiting[-1]["message"].startswith("VllmDecodeWorker: 0/1 ready; ")


DISAGGREGATED = """
    apiVersion: nvidia.com/v1alpha1
    kind: DynamoGraphDeployment
    metadata:
      name: chat
    spec:
      backendFramework: vllm
      services:
        Frontend:
          componentType: frontend
          envs: [{name: DYN_ROUTER_MODE, value: kv}]
          extraPodSpec: {mainContainer: {image: reg.example.com/vllm-runtime:1.0}}
        prefill: &worker
          componentType: worker
          subComponentType: prefill
          resources: {limits: {gpu: "1"}}
          extraPodSpec:
            mainContainer:
              image: reg.example.com/vllm-runtime:1.0
              command: [python3, -m, dynamo.vllm]
              args: [--model, Qwen/Qwen3-0.6B, --is-prefill-worker]
        decode:
          <<: *worker
          subComponentType: decode
    """


def test_j14_disaggregated_with_kv_routing(user: User) -> None:
    user.apply(DISAGGREGATED)
    user.ready("chat")
    assert "kv" == variables(user.pod("chat-frontend"))["DYN_ROUTER_MODE"]
    for role in ("prefill", "decode"):
        labels = user.template(f"chat-{role}")["metadata"]["labels"]
        assert "worker" == labels["nvidia.com/dynamo-component-type"]
        assert role == labels["nvidia.com/dynamo-sub-component-type"]
        found = variables(user.pod(f"chat-{role}"))
        assert f"{user.namespace}-chat" == found["DYN_NAMESPACE"]
    frontend = user.template("chat-frontend")["metadata"]["labels"]
    assert "frontend" == frontend["nvidia.com/dynamo-component-type"]


def test_j15_environment_precedence(user: User) -> None:
    user.apply("""
        apiVersion: nvidia.com/v1alpha1
        kind: DynamoGraphDeployment
        metadata: {name: chat}
        spec:
          envs: [{name: A, value: graph}, {name: B, value: graph}, {name: Z, value: graph}]
          services:
            Frontend:
              componentType: frontend
              extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
            Worker:
              componentType: worker
              envFromSecret: tokens
              envs: [{name: A, value: service}, {name: NATS_SERVER, value: "nats://mine:4222"}]
              extraPodSpec:
                mainContainer:
                  image: reg.example.com/vllm-runtime:1.0
                  env:
                    - {name: A, value: container}
                    - {name: B, value: container}
                    - {name: C, value: container}
        """)
    user.ready("chat")
    found = variables(user.pod("chat-worker"))
    strongest = {"A": "service", "B": "graph", "C": "container", "NATS_SERVER": "nats://mine:4222"}
    assert strongest == {name: found[name] for name in strongest}
    assert sorted(found) == list(found)
    assert "nats://nats.dynamo-system:4222" == variables(user.pod("chat-frontend"))["NATS_SERVER"]
    assert [{"secretRef": {"name": "tokens"}}] == main(user.pod("chat-worker"))["envFrom"]
    before = {name: user.generation(DEPLOYMENT, name) for name in ("chat-frontend", "chat-worker")}
    user.edit("dgd/chat", "spec: {envs: [{name: Z, value: other}]}")
    user.world.until(
        lambda: all(user.generation(DEPLOYMENT, name) > before[name] for name in before)
    )
    user.ready("chat")


def with_claim(name: str, claim: str) -> str:
    return f"""
        apiVersion: nvidia.com/v1alpha1
        kind: DynamoGraphDeployment
        metadata: {{name: {name}}}
        spec:
          pvcs: [{claim}]
          services:
            Frontend: &service
              componentType: frontend
              volumeMounts: [{{name: models, mountPoint: /models}}]
              extraPodSpec: {{mainContainer: {{image: "reg.example.com/vllm-runtime:1.0"}}}}
            Worker: {{<<: *service, componentType: worker}}
        """


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
    waiting = user.says("waits", "models does not exist")
    assert "pending" == waiting["status"]["state"]
    user.kubectl("create", "--filename=-", input=json.dumps(a_claim("models")))
    for name in ("waits-frontend", "waits-worker"):
        assert {"name": "models", "mountPath": "/models"} in main(user.pod(name))["volumeMounts"]
    user.world.until(lambda: "does not exist" not in ready_message(user, "waits"))
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
    user.kubectl("create", "--filename=-", input=json.dumps(a_claim("s3-model")))
    user.apply("""
        apiVersion: nvidia.com/v1alpha1
        kind: DynamoGraphDeployment
        metadata: {name: chat}
        spec:
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
    worker, frontend = user.pod("chat-worker"), user.pod("chat-frontend")
    assert {"name": "s3-model", "mountPath": "/model"} in main(worker)["volumeMounts"]
    assert "/model" == variables(worker)["HF_HOME"]
    assert "nodeAffinity" in worker["affinity"]
    assert "s3-model" not in json.dumps(frontend)
    assert "HF_HOME" not in variables(frontend)
    assert "affinity" not in frontend


def cached(framework: str, extra: str = "") -> str:
    return f"""
        apiVersion: nvidia.com/v1alpha1
        kind: DynamoGraphDeployment
        metadata: {{name: {framework}}}
        spec:
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
        """


def test_j18_compilation_cache(user: User) -> None:
    """A mistake is refused when it is applied: nobody has to look for a reconcile error."""
    user.apply(cached("vllm"))
    worker = user.pod("vllm-worker")
    assert {"name": "cache", "mountPath": "/root/.cache/vllm"} in main(worker)["volumeMounts"]
    assert "/root/.cache/vllm" == variables(worker)["VLLM_CACHE_ROOT"]
    words = user.refused(manifest=cached("sglang"))
    assert "volumeMounts[0].mountPoint: a mount point is required as sglang has no default" in words


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


def pull_secret(name: str, auths: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(auths.encode()).decode()},
    }


PRIVATE = """
    apiVersion: nvidia.com/v1alpha1
    kind: DynamoGraphDeployment
    metadata: {name: chat}
    spec:
      services:
        Frontend:
          componentType: frontend
          extraPodSpec: {mainContainer: {image: "reg.example.com:5000/vllm-runtime:1.0"}}
    """


def test_j19_private_registry(user: User) -> None:
    auths = '{"auths": {"reg.example.com:5000": {"auth": "eDp5"}}}'
    user.kubectl("create", "--filename=-", input=json.dumps(pull_secret("broken", "{}")))
    user.apply(PRIVATE)
    user.ready("chat")
    assert "imagePullSecrets" not in user.pod("chat-frontend")
    user.kubectl("create", "--filename=-", input=json.dumps(pull_secret("mine", auths)))
    user.world.eventually(
        DEPLOYMENT,
        "chat-frontend",
        lambda it: [{"name": "mine"}] == it["spec"]["template"]["spec"].get("imagePullSecrets"),
    )
    user.edit(
        "dgd/chat",
        """
        spec:
          services:
            Frontend:
              annotations: {nvidia.com/disable-image-pull-secret-discovery: "true"}
              extraPodSpec: {imagePullSecrets: [{name: by-hand}]}
        """,
    )
    user.world.eventually(
        DEPLOYMENT,
        "chat-frontend",
        lambda it: [{"name": "by-hand"}] == it["spec"]["template"]["spec"].get("imagePullSecrets"),
    )


def test_j19_secrets_of_other_namespaces_stay_there(user: User) -> None:
    auths = '{"auths": {"reg.example.com:5000": {"auth": "eDp5"}}}'
    theirs = json.dumps(pull_secret("theirs", auths))
    user.cluster.kubectl("create", "--namespace=default", "--filename=-", input=theirs)
    user.apply(PRIVATE)
    user.ready("chat")
    assert "imagePullSecrets" not in user.pod("chat-frontend")


def test_j20_pod_overrides(user: User) -> None:
    user.apply("""
        apiVersion: nvidia.com/v1alpha1
        kind: DynamoGraphDeployment
        metadata: {name: chat}
        spec:
          services:
            Plain:
              componentType: worker
              extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
            Own:
              componentType: worker
              extraPodMetadata: {labels: {team: search}, annotations: {note: mine}}
              livenessProbe: {httpGet: {path: /alive, port: 1234}, periodSeconds: 7}
              extraPodSpec:
                tolerations: [{key: gpu, operator: Exists}]
                nodeSelector: {kubernetes.io/os: linux}
                initContainers: [{name: fetch, image: "reg.example.com/fetch:1.0"}]
                containers: [{name: proxy, image: "reg.example.com/proxy:1.0"}]
                securityContext: {}
                terminationGracePeriodSeconds: 5
                mainContainer:
                  image: reg.example.com/vllm-runtime:1.0
                  startupProbe: {httpGet: {path: /started, port: 1234}, failureThreshold: 9}
        """)
    user.ready("chat")
    plain, own = user.pod("chat-plain"), user.pod("chat-own")
    assert {"fsGroup": 1000} == plain["securityContext"]
    assert 60 == plain["terminationGracePeriodSeconds"]
    assert {} == own["securityContext"]
    assert 5 == own["terminationGracePeriodSeconds"]
    assert {"kubernetes.io/os": "linux"} == own["nodeSelector"]
    assert [{"key": "gpu", "operator": "Exists"}] == own["tolerations"]
    assert ["fetch"] == [each["name"] for each in own["initContainers"]]
    assert {"main", "proxy"} == {each["name"] for each in own["containers"]}
    metadata = user.template("chat-own")["metadata"]
    assert ("search", "mine") == (metadata["labels"]["team"], metadata["annotations"]["note"])
    alive = main(own)["livenessProbe"]
    assert ("/alive", 7) == (alive["httpGet"]["path"], alive["periodSeconds"])
    assert 3 == alive["failureThreshold"], "replaced whole: what is left out is Kubernetes' default"
    started = main(own)["startupProbe"]
    assert ("/started", 9) == (started["httpGet"]["path"], started["failureThreshold"])


EXPOSED = """
    apiVersion: nvidia.com/v1alpha1
    kind: DynamoGraphDeployment
    metadata: {name: chat}
    spec:
      services:
        Frontend:
          componentType: frontend
          extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
    """


def test_j21_expose_through_ingress(user: User) -> None:
    user.apply(EXPOSED)
    spec = user.world.eventually(Ingress.KIND, "chat-frontend")["spec"]
    assert "nginx" == spec["ingressClassName"]
    [rule] = spec["rules"]
    assert "chat.lab.example.com" == rule["host"]
    [path] = rule["http"]["paths"]
    assert ("/", "Prefix") == (path["path"], path["pathType"])
    backend = path["backend"]["service"]
    assert "chat-frontend" == backend["name"]
    assert {"hosts": ["chat.lab.example.com"], "secretName": "lab-tls"} in spec["tls"]
    user.edit(
        "dgd/chat",
        """
        spec:
          services:
            Frontend:
              ingress: {enabled: true, host: demo, hostSuffix: example.org,
                        ingressControllerClassName: other}
        """,
    )
    user.world.eventually(
        Ingress.KIND,
        "chat-frontend",
        lambda it: (
            ("other", "demo.example.org")
            == (it["spec"]["ingressClassName"], it["spec"]["rules"][0]["host"])
        ),
    )
    user.edit("dgd/chat", "{spec: {services: {Frontend: {ingress: {enabled: false, host: null}}}}}")
    user.world.gone(Ingress.KIND, "chat-frontend")
    words = user.refused(
        *("patch", "dgd/chat", "--type=merge"),
        '--patch={"spec": {"services": {"Frontend": {"ingress": {"enabled": true}}}}}',
    )
    assert "spec.services[Frontend].ingress.host is required when ingress is enabled" in words
    assert is_ready(user.ready("chat"))
