"""Objects that a tenant may store while webhooks are off: over the size limit, just below it, and odd."""

import base64
from collections.abc import Iterator
from itertools import cycle, zip_longest

import msgspec

from cluster.graph.graphs import service
from dynamo_operator.component.api import GROUP
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.cluster import OPTIONAL_APIS
from kube_runtime.types.meta import Kind, Object
from specs.fat_objects import OF_USERS, selected

LARGEST_BYTES = 1_400_000
"""About what etcd stores: it refuses requests over 1.5 MiB, and the server adds managed fields."""
_SMALL, _MEDIUM, _LARGE = 2_000, 8_000, 10_000


def envs(count: int) -> list[Object]:
    """So many variables, of about 28 bytes each."""
    return [{"name": f"V{number}", "value": "x"} for number in range(count)]


def _graphs() -> dict[str, Object]:
    frontend = service("frontend")
    volumes = {
        "volumes": [{"name": f"v{number}", "emptyDir": {}} for number in range(400)],
        "mainContainer": {
            "image": "i",
            "volumeMounts": [{"name": f"v{number}", "mountPath": f"/{number}"} for number in range(400)],
        },
    }
    scripts = {"long-script": "a/" * 110_000, "largest-script": "--a='" * (LARGEST_BYTES // 5)}
    return {
        "largest-variables": {"services": {"a": {**frontend, "envs": envs(LARGEST_BYTES // 29)}}},
        "long-name": {"services": {"x" * 350_000: frontend}},
        "many-variables": {"services": {"a": {**frontend, "envs": envs(_LARGE)}}},
        "some-variables": {"services": {"a": {**frontend, "envs": envs(_SMALL)}}},
        "shared-variables": {
            "envs": envs(3000),
            "services": {f"s{number}": frontend for number in range(20)},
        },
        **{
            name: {
                "services": {
                    "a": {**frontend, "extraPodSpec": {"mainContainer": {"image": "i", "args": [text]}}}
                }
            }
            for name, text in scripts.items()
        },
        "many-volumes": {"services": {"a": {**frontend, "extraPodSpec": volumes}}},
    }


def _requests() -> dict[str, Object]:
    profiling = {"profilerImage": "r/p:1", "config": {"sla": {"ttft": 200}}}
    request = {"model": "m", "backend": "vllm"}
    deep: Object = {}
    for _ in range(150):  # the server reads no deeper
        deep = {"a": deep}
    configs: dict[str, Object] = {
        "largest-configuration": {f"k{number}": "x" * 40 for number in range(25_000)},
        "wide-configuration": {f"k{number}": {"v": number} for number in range(9_000)},
        "deep-configuration": {"sla": {"ttft": 200}, "deep": deep},
    }
    return {
        **{
            name: {**request, "profilingConfig": {**profiling, "config": {**config}}}
            for name, config in configs.items()
        },
        "expanding-base": {
            **request,
            "profilingConfig": {
                **profiling,
                "configMapRef": {"name": "configmap-owner-0"},
                "nodeSelector": {},
            },
        },
        "request-variables": {**request, "profilingConfig": {**profiling, "env": envs(_MEDIUM)}},
    }


def hostile_objects() -> Iterator[tuple[str, Kind, Object]]:
    """What it is, its kind and its spec; without end, of both kinds in turns."""
    kinds = {DynamoGraphDeployment.KIND: _graphs(), DynamoGraphDeploymentRequest.KIND: _requests()}
    of_each = ([(what, kind, spec) for what, spec in specs.items()] for kind, specs in kinds.items())
    yield from cycle(found for row in zip_longest(*of_each) for found in row if found)


_LAUGHS = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{line}: &a{line} [{f'*a{line - 1}, ' * 9}]" for line in range(1, 30))]
)
_FEW = 3


def _accepted(letters: int) -> dict[str, Object]:
    """By kind, what the API server accepts, with about so many letters in its content or its status."""
    text = "x" * letters
    containers = [{"name": "a", "image": "i", "env": envs(letters // 30)}]
    pod = {"nodeSelector": {"no": "node"}, "restartPolicy": "Never", "containers": containers}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**pod, "restartPolicy": "Always"}}
    replicas = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    frontend = {"componentType": "frontend", "extraPodSpec": {"mainContainer": {"image": "i"}}}
    hosts = {f"{number}.example": {"auth": "YTpi"} for number in range(letters // 40)}
    logins = base64.b64encode(msgspec.json.encode({"auths": hosts})).decode()
    endpoints = [{"address": f"http://10.0.0.1:{port}", "ready": False} for port in range(letters // 50)]
    request = {"model": "m", "backend": "vllm", "profilingConfig": {"profilerImage": "r/p:1"}}
    adapter = {"replicas": 1, "dgdRef": {"name": "../../victim/x?y=z", "serviceName": "x" * 10_000}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
    specs: dict[str, Object] = {
        "Deployment": replicas,
        "DynamoComponentDeployment": {**frontend, "envs": envs(letters // 30)},
        "DynamoGraphDeployment": {"services": {"a": frontend}},
        "DynamoGraphDeploymentRequest": request,
        "DynamoGraphDeploymentScalingAdapter": adapter,
        "DynamoModel": {"modelName": "a/" * (letters // 2), "baseModelName": "b"},
        "HorizontalPodAutoscaler": {"maxReplicas": 1, "scaleTargetRef": {"kind": "Stranger", "name": "a"}},
        "Ingress": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}},
        "Job": {"suspend": True, "template": {"spec": pod}},
        "Lease": {"holderIdentity": text},
        "PersistentVolumeClaim": claim,
        "Pod": pod,
        "PodDisruptionBudget": {},
        "Service": {"ports": [{"port": 80}]},
        "StatefulSet": {"serviceName": "a", **replicas},
    }
    others: dict[str, Object] = {
        "ConfigMap": {"data": {"disagg.yaml": _LAUGHS, "text": text}},
        "ControllerRevision": {"revision": 1, "data": {"a": text}},
        "EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}] * 1000},
        "Role": {},
        "RoleBinding": {"roleRef": role},
        "Secret": {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": logins}},
        "ServiceAccount": {},
    }
    statuses: dict[str, Object] = {
        "DynamoComponentDeployment": {"podSelector": {"a": text}},
        "DynamoGraphDeployment": {"state": text},
        "DynamoGraphDeploymentRequest": {"state": "Ready", "additionalResources": [{"a": text}]},
        "DynamoGraphDeploymentScalingAdapter": {"selector": text},
        "DynamoModel": {"endpoints": endpoints, "readyEndpoints": 0, "totalEndpoints": 0},
    }
    with_status = {name: {"status": statuses[name]} if name in statuses else {} for name in specs}
    return others | {name: {"spec": spec, **with_status[name]} for name, spec in specs.items()}


def strangers(of_each: int) -> Iterator[tuple[str, Kind, Object]]:
    """So many objects of each watched type: its name, its kind and itself.

    In turns, one has a large owner reference, one many annotations and much content or status: the first few
    a megabyte, as etcd would not store a thousand of these. Kinds of optional APIs and of the older
    generation are not installed there; `test_neighbours.py` has them.
    """
    missing = {kind for api in OPTIONAL_APIS for kind in api.kinds}
    small, large = _accepted(20_000), _accepted(900_000)
    for number in range(of_each):
        letters, accepted = (900_000, large) if number < _FEW else (20_000, small)
        owner = {"apiVersion": "example.com/v1", "kind": "Stranger", "name": "x" * letters, "uid": "u"}
        annotations = {f"example.com/a{entry}": "x" * 20 for entry in range(letters // 250)}
        of_owner, of_notes = {"ownerReferences": [owner]}, {"annotations": annotations}
        for informer in OF_USERS:
            kind: Kind = informer.type_.KIND
            if kind in missing or (kind.group == GROUP and kind.name not in small):
                continue
            name = f"{informer.type_.__name__.lower()}-{number}"
            metadata, content = (of_owner, small) if number % 2 else (of_notes, accepted)
            yield name, kind, selected(informer, {**content[kind.name], "metadata": metadata}, name, "")
