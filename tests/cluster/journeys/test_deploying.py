"""Deploy a graph: the user journeys from the first manifest to a ready graph.

Everything is done with kubectl, and what a journey promises is looked for where a user sees it. HTTP
answers of models are not: pods are not real here.
"""

import base64
import json

import pytest

from cluster.conditions import condition, is_ready
from cluster.journeys.user import User, main, only_a_frontend
from cluster.world import COMPONENT, DEPLOYMENT, GRAPH
from kube_runtime.types.kinds import Ingress, Service
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

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
    assert ("all_resources_are_ready", "All resources are ready") == (said["reason"], said["message"])
    seen = [each["object"] for each in user.world.changes(GRAPH, since=before)]
    pending = [each for each in seen if "pending" == each.get("status", {}).get("state")]
    assert pending
    waiting = [condition(each) for each in pending]
    assert {"some_resources_are_not_ready", "pods_not_ready"} >= {each["reason"] for each in waiting}
    assert "vllmdecodeworker" in waiting[-1]["message"].lower()  # of its pods, or of its Deployment before


def pull_secret(name: str, auths: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(auths.encode()).decode()},
    }


def pulls_with(user: User, secret: str) -> None:
    wanted = [{"name": secret}]
    user.world.eventually(
        DEPLOYMENT,
        "chat-frontend",
        lambda it: wanted == it["spec"]["template"]["spec"].get("imagePullSecrets"),
    )


AUTHS = '{"auths": {"reg.example.com:5000": {"auth": "eDp5"}}}'
PRIVATE = only_a_frontend("reg.example.com:5000/vllm-runtime:1.0")


def test_j19_private_registry(user: User) -> None:
    user.create(pull_secret("broken", "{}"))
    user.apply(PRIVATE)
    user.ready("chat")
    assert "imagePullSecrets" not in user.pod("chat-frontend")
    user.create(pull_secret("mine", AUTHS))  # pods that run keep what they have
    user.edit("dgd/chat", "spec: {services: {Frontend: {envs: [{name: EDITED, value: 'yes'}]}}}")
    pulls_with(user, "mine")
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
    pulls_with(user, "by-hand")


def test_j19_secrets_of_other_namespaces_stay_there(user: User) -> None:
    theirs = json.dumps(pull_secret("theirs", AUTHS))
    user.cluster.kubectl("create", "--namespace=default", "--filename=-", input=theirs)
    user.apply(PRIVATE)
    user.ready("chat")
    assert "imagePullSecrets" not in user.pod("chat-frontend")


def test_j21_expose_through_ingress(user: User) -> None:
    user.apply(only_a_frontend("reg.example.com/vllm-runtime:1.0"))
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
            ("other", "demo.example.org") == (it["spec"]["ingressClassName"], it["spec"]["rules"][0]["host"])
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
