"""Objects of the older generation for tests: the examples that its document printed, and their graph."""

from typing import Any

from cluster.world import World
from dynamo_legacy.api import DynamoDeployment, DynamoNim, DynamoNimDeployment, DynamoNimRequest
from dynamo_legacy.names import GRAPH_CONFIG, GRAPH_CONFIG_KEY, nim_name
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Object

DEPLOYMENT = DynamoDeployment.KIND
COMPONENT = DynamoNimDeployment.KIND
NIM = DynamoNim.KIND
REQUEST = DynamoNimRequest.KIND
CONFIG = ConfigMap.KIND

TAG = "frontend:jh2o6dqzpsgfued4"
IMAGE = "registry.example.com/nvidian/yatai-bentos:yatai.frontend.jh2o6dqzpsgfued4"
SERVICES = ("Frontend", "PrefillWorker", "Processor", "Router", "VllmWorker")

GRAPH = """
service: graphs.disagg:Frontend
entry_service: Frontend
services:
- name: Frontend
  dependencies: [{service: Processor}]
  config: {}
- name: Processor
  dependencies: [{service: VllmWorker}, {service: Router}]
  config: {dynamo: {enabled: true, name: Processor, namespace: dynamo}}
- name: VllmWorker
  dependencies: [{service: PrefillWorker}]
  config:
    dynamo: {enabled: true, name: VllmWorker, namespace: dynamo}
    resources: {cpu: '10', memory: 20Gi, gpu: '1'}
- name: PrefillWorker
  config:
    dynamo: {enabled: true, name: PrefillWorker, namespace: dynamo}
    resources: {cpu: '10', memory: 20Gi, gpu: '1'}
- name: Router
  dependencies: [{service: VllmWorker}]
  config: {dynamo: {enabled: true, name: Router, namespace: dynamo}}
"""


def disagg(name: str = "disagg", tag: str = TAG) -> Object:
    """The DynamoDeployment that the document printed."""
    specific = {"name": "SPECIFIC_ENV_VAR", "value": "some_specific_value"}
    services = {each: {"replicas": 1, "envs": [specific]} for each in SERVICES}
    services["Router"]["replicas"] = 0
    spec = {
        "dynamoNim": tag,
        "envs": [{"name": "GLOBAL_ENV_VAR", "value": "some_global_value"}],
        "services": services,
    }
    return {"metadata": {"name": name}, "spec": spec}


def worker() -> Object:
    """The DynamoNimDeployment that the document printed."""
    amounts = {"cpu": "10", "gpu": "1", "memory": "20Gi"}
    spec = {
        "dynamoNim": "frontend--jh2o6dqzpsgfued4",
        "dynamoTag": "graphs.disagg:Frontend",
        "serviceName": "Frontend",
        "dynamoNamespace": "dynamo",
        "envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": '{"a":1}'}],
        "externalServices": {
            "PrefillWorker": {
                "deploymentSelectorKey": "dynamo",
                "deploymentSelectorValue": "PrefillWorker/dynamo",
            }
        },
        "resources": {"limits": amounts, "requests": amounts},
    }
    return {"metadata": {"name": "test-41fa991-vllmworker"}, "spec": spec}


def graph_config(text: str = GRAPH, tag: str = TAG) -> Object:
    metadata = {"name": nim_name(tag), "labels": {GRAPH_CONFIG: "true"}}
    return {"metadata": metadata, "data": {GRAPH_CONFIG_KEY: text}}


def image(tag: str = TAG) -> Object:
    """The image of a tag, written by hand."""
    spec = {"tag": tag, "image": IMAGE, "imagePullSecrets": [{"name": "yatai-regcred"}]}
    return {"metadata": {"name": nim_name(tag)}, "spec": spec}


def with_graph(world: World, text: str = GRAPH) -> None:
    """Write the ConfigMap with the graph of the tag."""
    world.create(CONFIG, graph_config(text))


def with_image(world: World) -> None:
    world.create(NIM, image())


def is_successful(deployment: Object) -> bool:
    status = deployment.get("status", {})
    is_current = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return bool(is_current and status.get("state") == "successful")


def condition_of(found: Object, type_: str) -> tuple[Any, ...]:
    """Status, reason and message of a condition; empty if it is not there."""
    for each in found.get("status", {}).get("conditions", ()):
        if each["type"] == type_:
            return each["status"], each["reason"], each["message"]
    return ()
