"""The page docs/defaults.md: what the operator adds to pods, from rendered short manifests."""

from pathlib import Path
from typing import Any

import msgspec

from dynamo_graphs.offline import graph_tree
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from tools.markdown import escaped, table

PAGE = Path(__file__).parents[1] / "docs" / "defaults.md"
HEAD = """\
# What the operator adds to pods

<!-- Written by `make docs` from what `tools/defaults_page.py` renders. Do not edit. -->

The manifest of a service may be as short as a component type and an image. This page lists what its pods
then have: rendered from the graph `chat` in namespace `lab`, with the settings of a default installation.
`dynamoctl render -f FILE` prints the same for your manifest.

- A field of your own replaces a default: in `podTemplate`, of which the container `main` is the one below,
  and in `sharedMemorySize` ([fields](reference/dynamographdeployment-v1beta1.md)); in `v1alpha1` in
  `extraPodSpec`, its `mainContainer`, `envs`, `resources`, both probes and `sharedMemory`.
- A probe and a `securityContext` are replaced whole. With a `securityContext` of your own, even an empty one,
  `fsGroup` is not set; on OpenShift that lets the security context constraints choose.
- The operator adds the pull secrets of the namespace whose registries the images name, unless the
  service has the annotation `nvidia.com/disable-image-pull-secret-discovery: "true"`.
- Containers that you add yourself get nothing.
"""
PART_OF = {
    "containers": "container",
    "env": "environment",
    "initContainers": "init container",
    "ports": "port",
    "volumes": "volume",
    "volumeMounts": "volume mount",
}
ENGINES = {
    "vllm": "python3 -m dynamo.vllm --model m --tensor-parallel-size 4",
    "sglang": "python3 -m dynamo.sglang --model-path m --tp 4",
    "trtllm": "python3 -m dynamo.trtllm --model-path m --tensor-parallel-size 4",
}
TITLES = {
    "frontend": "Frontends",
    "worker": "Workers",
    "prefill": "Prefill workers: as workers, but",
    "decode": "Decode workers: as workers, but",
    "planner": "Planners",
    "epp": "Endpoint pickers",
    "default": "Services without a type",
}
TYPES = tuple(TITLES)
DOCUMENTED = """\
## Probes of the API reference

`--probe-profile=documented` (chart: `dynamo-operator.dynamo.probeProfile`) selects the default probes that
the API reference prints, some of which need `curl` and `jq` in the image. What differs:
"""
SEVERAL_NODES = """\
## Workers on several nodes

With LeaderWorkerSets the first pod of each replica leads and the others follow. This is what differs, with
`multinode.nodeCount: 2`, from a worker on one node. With Grove it is the same for the cliques.
"""
Rows = dict[str, str]
KEYS = "mpi-run-ssh-secret"  # as in the chart
DEFAULTS = RenderSettings(mpi_secret_name=KEYS)
LONGEST = 300
"""Maximum length of a printed value."""


def pods(service: Object, kind: str, settings: RenderSettings = DEFAULTS) -> list[tuple[str, Object]]:
    """The pod templates of a service's workload, with the names of their roles."""
    body = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "chat", "namespace": "lab"},
        "spec": {"services": {"Service": service}},
    }
    graph = msgspec.convert(body, DynamoGraphDeployment)
    for manifest in graph_tree(graph, Facts(lws_served=True), settings):
        if manifest["kind"] == "Deployment" == kind:
            return [("", manifest["spec"]["template"])]
        if manifest["kind"] == "LeaderWorkerSet" == kind:
            templates = manifest["spec"]["leaderWorkerTemplate"]
            return [("leader", templates["leaderTemplate"]), ("worker", templates["workerTemplate"])]
    raise LookupError(kind)


def rows(template: Object) -> Rows:
    """The pod's fields and labels, each as a path with its value."""
    fields: Rows = {}
    for key, value in template["metadata"].get("labels", {}).items():
        fields[f"label `{key}`"] = _printed(value)
    spec = dict(template["spec"])
    [container] = [container for container in spec.pop("containers") if container["name"] == "main"]
    for name, value in spec.items():
        _add(fields, name, value)
    for name, value in container.items():
        if name not in ("name", "image"):
            _add(fields, name, value)
    return fields


def _add(fields: Rows, name: str, value: Any) -> None:
    """One row for each named item of a list, one for anything else."""
    part = PART_OF.get(name)
    if part is None:
        fields[f"`{name}`"] = _printed(value)
        return
    rest: Any
    for item in value:
        label = item["mountPath"] if name == "volumeMounts" else item["name"]
        rest = {key: field for key, field in item.items() if field != label}
        if name == "env":
            rest = rest.get("valueFrom") or rest.get("value", "")
        if name == "initContainers":
            rest = [*rest["command"], *rest["args"]]
        fields[f"{part} `{label}`"] = _printed(rest)


def _printed(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
    if len(text) > LONGEST:
        return "a script; `dynamoctl render` prints it"
    return f"`{escaped(text)}`" if text else "empty"


def fields_table(fields: Rows) -> str:
    """Fields as a table."""
    return "\n".join(table(("field", "value"), fields.items())) + "\n"


def without(fields: Rows, others: Rows) -> Rows:
    """The fields that differ in `others` or are not in them."""
    return {path: value for path, value in fields.items() if others.get(path) != value}


def shortest_service(component_type: str) -> Object:
    """The shortest service of a type."""
    body: Object = {
        **({} if component_type == "default" else {"componentType": component_type}),
        "extraPodSpec": {"mainContainer": {"image": "registry.example.com/image:1.0.0"}},
    }
    if component_type == "epp":
        body["eppConfig"] = {"config": {"plugins": [], "schedulingProfiles": []}}
    return body


def engine(framework: str, nodes: int) -> Object:
    """A worker of a backend, with two GPUs on each node."""
    container = {"image": "registry.example.com/image:1.0.0", "command": ["/bin/sh", "-c"]}
    return {
        "componentType": "worker",
        "multinode": {"nodeCount": nodes},
        "resources": {"limits": {"gpu": "2"}},
        "extraPodSpec": {"mainContainer": {**container, "args": [ENGINES[framework]]}},
    }


def compared(fields: Rows, single: Rows) -> Rows:
    """The differences between a pod on several nodes and one on a single node."""
    return without(fields, single) | {path: "not set" for path in single if path not in fields}


def page() -> str:
    """The page."""
    by_type = {type_: rows(pods(shortest_service(type_), "Deployment")[0][1]) for type_ in TYPES}
    common = {
        path: value
        for path, value in by_type["worker"].items()
        if all(fields.get(path) == value for fields in by_type.values())
    }
    parts = [HEAD, "## Every pod\n", fields_table(common)]
    for name, fields in by_type.items():
        base = by_type["worker"] if name in ("prefill", "decode") else common
        parts += [f"## {TITLES[name]}\n", fields_table(without(fields, base))]
    parts.append(DOCUMENTED)
    for name in ("frontend", "worker"):
        [(_, template)] = pods(
            shortest_service(name),
            "Deployment",
            RenderSettings(mpi_secret_name=KEYS, probe_profile="documented"),
        )
        parts += [f"### {TITLES[name]}\n", fields_table(without(rows(template), by_type[name]))]
    parts.append(SEVERAL_NODES)
    for framework, command in ENGINES.items():
        single = rows(pods(engine(framework, 1), "Deployment")[0][1])
        for role, template in pods(engine(framework, 2), "LeaderWorkerSet"):
            fields = compared(rows(template), single)
            parts += [f"### {framework}, {role}\n", f"For `{command}`:\n", fields_table(fields)]
    return "\n".join(parts)
