"""Graphs and components for tests: small ones to change by hand, and random ones for properties."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.meta import Object

IMAGE = "registry.example.com/dynamo/vllm:1.0"
MANIFEST = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat
spec:
  services:
    w:
      componentType: worker
      extraPodSpec:
        mainContainer:
          image: example.com/worker:1
          args: [run]
"""


def a_service(component_type: str = "worker", /, **fields: Any) -> Object:
    """A service that is fine, with the fields laid over it."""
    pod = {"mainContainer": {"image": IMAGE}}
    return {"componentType": component_type, "extraPodSpec": pod, **fields}


def a_graph(
    services: dict[str, Object], name: str = "chat", namespace: str = "prod", **spec: Any
) -> DynamoGraphDeployment:
    metadata = {"name": name, "namespace": namespace, **spec.pop("metadata", {})}
    body = {"metadata": metadata, "spec": {"services": services, **spec}}
    return msgspec.convert(body, DynamoGraphDeployment)


def a_component(
    name: str = "w", namespace: str = "prod", metadata: Object | None = None, **spec: Any
) -> DynamoComponentDeployment:
    body = {"metadata": {"name": name, "namespace": namespace, **(metadata or {})}, "spec": a_service(**spec)}
    return msgspec.convert(body, DynamoComponentDeployment)


_names = st.sampled_from(("a", "b", "team-x", "c0"))
_keys: st.SearchStrategy[str] = st.sampled_from(
    ("W", "w", "V", "W-d", "w.d", "w_d", "Under_Score", "Frontend", "Long" * 16, "Long" * 17, "_")
)
_label_keys = _names | st.sampled_from(
    (
        "nvidia.com/selector",
        "nvidia.com/dynamo-component",
        "nvidia.com/dynamo-component-type",
        "nvidia.com/dynamo-deployment-target-type",
        "nvidia.com/last-applied-hash",
        "example.com/team",
    )
)
_maps = st.dictionaries(_label_keys, _names | st.just(""), max_size=3)
_switches = st.sampled_from(
    (
        {},
        {"nvidia.com/enable-debug-mode": "true"},
        {"nvidia.com/enable-stealing-traffic-debug-mode": "true"},
        {"nvidia.com/deployment-strategy": "Recreate"},
        {"nvidia.com/deployment-rolling-update-max-surge": "2"},
        {"nvidia.com/dynamo-discovery-backend": "etcd"},
        {"nvidia.com/enable-metrics": "false"},
        {"nvidia.com/restartAt": "r1"},
    )
)
_scalars = st.none() | st.booleans() | st.integers(-5, 70000) | st.text(max_size=4)
JSON: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
_env = st.fixed_dictionaries(
    {"name": st.sampled_from(("A", "B", "DYN_NAMESPACE", "VLLM_CACHE_ROOT"))},
    optional={"value": st.sampled_from(("", "x", None))},
)
_probe = st.sampled_from(
    (
        {"exec": {"command": ["true"]}},
        {"httpGet": {"port": 8080}, "periodSeconds": 3},
        {"tcpSocket": {"port": "http"}, "failureThreshold": 0},
    )
)
_side = st.fixed_dictionaries(
    {}, optional={"cpu": st.just("1"), "memory": st.just("2Gi"), "gpu": st.just("2")}
)
_mounts = st.sampled_from(
    (
        [{"name": "cache", "useAsCompilationCache": True, "mountPoint": "/cache"}],
        [{"name": "models", "mountPoint": "/a"}, {"name": "models", "mountPoint": "/b"}],
        [{"name": "with.dots", "mountPoint": "/dev/shm"}],  # noqa: S108
    )
)
_main = st.fixed_dictionaries(
    {"image": st.just(IMAGE)},
    optional={
        "name": st.sampled_from(("", "mine")),
        "command": st.sampled_from((["python3", "-m", "dynamo.vllm"], ["sh", "-c"], [])),
        "args": st.lists(st.sampled_from(("--model", "m")), max_size=2),
        "env": st.lists(_env, max_size=3, unique_by=lambda entry: entry["name"]),
        "livenessProbe": _probe,
        "startupProbe": _probe,
        "resources": st.just({"limits": {"nvidia.com/gpu": "2", "rdma/ib": 1}}),
        "ports": st.just([{"containerPort": 1}]) | st.just([]),
        "unknown": _scalars,
    },
)
_pod = st.fixed_dictionaries(
    {"mainContainer": _main},
    optional={
        "containers": st.just([{"name": "side", "image": "side:1", "env": [{"name": "A"}]}]),
        "volumes": st.sampled_from(([], [{"name": "own", "emptyDir": {}}])),
        "imagePullSecrets": st.just([{"name": "mine"}]),
        "securityContext": st.sampled_from(({}, {"runAsUser": 0}, None)),
        "terminationGracePeriodSeconds": st.integers(0, 5),
        "serviceAccountName": _names,
    },
)
services: st.SearchStrategy[Object] = st.fixed_dictionaries(
    {"extraPodSpec": _pod, "annotations": st.builds(dict.__or__, _maps, _switches)},
    optional={
        "componentType": st.sampled_from(("frontend", "worker", "decode", "planner", "other", "")),
        "subComponentType": _names,
        "replicas": st.integers(0, 3),
        "labels": _maps,
        "extraPodMetadata": st.fixed_dictionaries({"labels": _maps, "annotations": _maps}),
        "envs": st.lists(_env, max_size=3),
        "envFromSecret": _names,
        "resources": st.fixed_dictionaries({}, optional={"requests": _side}),
        "volumeMounts": _mounts,
        "sharedMemory": st.sampled_from(({"disabled": True}, {"size": "2Gi"})),
        "livenessProbe": _probe,
        "modelRef": st.just({"name": "acme/chat-7b"}),
        "globalDynamoNamespace": st.booleans(),
        "ingress": st.fixed_dictionaries(
            {"enabled": st.booleans(), "host": st.just("chat")},
            optional={
                "ingressControllerClassName": st.just("nginx"),
                "labels": _maps,
                "tls": st.sampled_from(({}, {"secretName": "t"})),
            },
        ),
    },
)
"""Services of every sort; nearly all of them are fine."""

_groups: list[Object] = [
    {
        "componentType": "worker",
        "multinode": {"nodeCount": 3},
        "resources": {"limits": {"gpu": "4"}},
        "extraPodSpec": {"mainContainer": {"image": IMAGE, "args": [f"python3 -m dynamo.{script}"]}},
    }
    for script in ("vllm -tp 16", "vllm -dp 8", "sglang", "trtllm")
]
several_nodes: st.SearchStrategy[Object] = st.builds(
    lambda service, replicas, model: {**service, "replicas": replicas, **model},
    st.sampled_from(_groups),
    st.integers(0, 2),
    st.sampled_from(({}, {"modelRef": {"name": "acme/chat-7b"}})),
)
"""Services on several nodes, of each framework."""

_wrong: st.SearchStrategy[Object] = st.sampled_from(
    (
        {},
        {},
        {"replicas": -1},
        {"multinode": {"nodeCount": 2}},
        *_groups,
        {"componentType": "epp"},
        {"componentType": "epp", "replicas": 1, "eppConfig": {"config": {"plugins": []}}},
        {"componentType": "not a label"},
        {"ingress": {"enabled": True, "host": "no host"}},
        {"sharedMemory": {}},
        {"sharedMemory": {"size": "much"}},
        {"volumeMounts": [{"name": "a", "mountPoint": "x"}]},
        {"volumeMounts": [{"name": "a", "useAsCompilationCache": True}]},
        {"resources": {"limits": {"gpu": "x"}}},
        {"resources": {"limits": {"gpu": "1"}, "requests": {"gpu": "2"}}},
        {"resources": {"limits": {"custom": {"": "1"}}}},
        {"livenessProbe": {}},
        {"modelRef": {"name": ""}},
        {"envs": [{"value": "x"}]},
        {"envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": "["}]},
        {"envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": '{"W": {"ServiceArgs": 1}}'}]},
        {
            "envs": [
                {
                    "name": "DYN_DEPLOYMENT_CONFIG",
                    "value": '{"W": {"ServiceArgs": {"workers": 2, "resources": {"gpu": "2"}}}}',
                }
            ]
        },
        {"extraPodSpec": {"mainContainer": {}}},
        {"extraPodSpec": {"mainContainer": {"image": IMAGE}, "containers": [{"name": "main"}]}},
        {"extraPodSpec": {"mainContainer": {"image": IMAGE}, "restartPolicy": "Never"}},
        {"labels": {"no key!": "x"}},
        {"annotations": {"nvidia.com/dynamo-discovery-backend": "elsewhere"}},
    )
)
_graph_names = st.sampled_from(("chat", "qwen3-0.6b", "70b", "a" * 60, "a.b" * 80, "x"))


@st.composite
def graphs(draw: st.DrawFn) -> DynamoGraphDeployment:
    """Graphs of one to three services, some of them wrong."""
    wanted = draw(st.dictionaries(_keys, services, min_size=1, max_size=3))
    first = next(iter(wanted))
    wanted[first] = {**wanted[first], **draw(_wrong)}
    return a_graph(
        wanted,
        name=draw(_graph_names),
        envs=draw(st.lists(_env, max_size=2)),
        backendFramework=draw(st.sampled_from((None, "vllm"))),
    )


@st.composite
def odd_graphs(draw: st.DrawFn) -> DynamoGraphDeployment:
    """Graphs with any JSON at all somewhere in their pod specs."""
    service = draw(services)
    pod = dict(service["extraPodSpec"])
    if draw(st.booleans()):
        field = draw(st.sampled_from(("containers", "volumes", "imagePullSecrets", "mainContainer")))
        pod[field] = draw(JSON | st.lists(st.dictionaries(st.just("name"), JSON, max_size=1)))
    else:
        field = draw(st.sampled_from(("env", "command", "ports", "resources", "livenessProbe")))
        pod["mainContainer"] = {"image": IMAGE, field: draw(JSON | st.just([{"name": "A"}]))}
    framework = draw(st.sampled_from((None, "sglang", "trtllm", "vllm")))
    if framework:
        service |= {"componentType": "worker", "multinode": {"nodeCount": 2}}
        service["resources"] = {"limits": {"gpu": "4"}}
    return a_graph({"W": {**service, "extraPodSpec": pod}}, backendFramework=framework)
