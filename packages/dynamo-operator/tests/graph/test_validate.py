"""The rules of a graph as a whole. Those with one bad example each are in `tests/reviews/rows.py`."""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from dynamo_graphs.offline import expanded
from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentSpec
from dynamo_operator.graph.decide import with_provider
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.graph.warnings import graph_warnings
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object, Struct
from reviews.asking import verdict
from reviews.rows import graph, model
from specs import a_graph, a_service


def problems(services: dict[str, Object], **spec: Any) -> list[str]:
    settings = spec.pop("settings", RenderSettings())
    return [str(problem) for problem in graph_problems(a_graph(services, **spec), settings)]


WORKER = {"w": a_service()}
DEBUGGED = {"annotations": {"nvidia.com/enable-stealing-traffic-debug-mode": "true"}}
RUN: Object = {"mainContainer": {"image": "x", "args": ["run"]}}
SGLANG: Object = {"mainContainer": {"image": "x", "args": ["python3 -m dynamo.sglang"]}}
SEVERAL: Object = {
    "disruptionBudget": {"minAvailable": 1},
    "multinode": {"nodeCount": 2},
    "extraPodSpec": RUN,
}
PVC: Object = {
    "name": "a",
    "create": True,
    "size": "1Gi",
    "storageClass": "fast",
    "volumeAccessMode": "ReadWriteMany",
}


def annotated(key: str, value: str) -> Object:
    return {"metadata": {"annotations": {f"nvidia.com/{key}": value}}}


@pytest.mark.parametrize(
    ("services", "spec", "expected"),
    [
        (
            {"_": a_service()},
            {},
            "spec.services._: invalid service name (expected at least one letter or digit)",
        ),
        ({"w": a_service(extraPodSpec=SGLANG)}, {"backendFramework": "vllm"}, 'detected "sglang"'),
        *(
            ({one: a_service(), other: a_service()}, {}, "would both create objects named")
            for one, other in (("w", "W"), ("a.b", "a-b"), ("a_b", "a-b"))
        ),
        (
            {"w": a_service(**DEBUGGED), "w-d": a_service()},
            {},
            'spec.services.w-d: "w" and "w-d" would both create objects named "chat-w-d"',
        ),
        ({"w": a_service(**SEVERAL)}, {}, "the pods of a multinode group are one unit"),
        (WORKER, {"pvcs": [{"name": "c"}, {"name": "c"}]}, 'spec.pvcs[1].name: duplicate PVC "c"'),
        (
            WORKER,
            {"pvcs": [{**PVC, "volumeAccessMode": "latest"}]},
            'spec.pvcs[0].volumeAccessMode: unknown access mode "latest"',
        ),
        (
            WORKER,
            {"restart": {"id": "r", "strategy": {"order": ["w", "W"]}}},
            'unknown service: W; did you mean "w"?',
        ),
        (WORKER, {"envs": [{"value": "x"}]}, "spec.envs[0].name: missing name of an environment variable"),
        (WORKER, annotated("dynamo-discovery-backend", "etcdd"), 'did you mean "etcd"?'),
        *((WORKER, annotated(key, "yes"), "expected true or false") for key in ("paused", "suspend")),
        *(
            (WORKER, annotated("worker-rollout", mode), "expected managed or native")
            for mode in ("", "Managed", "manged")
        ),
        (
            WORKER,
            {"restart": {"id": "r", "strategy": {"order": [f"s{number}" for number in range(30_000)]}}},
            "too many entries: 30000 (expected one for each of 1 services)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_graph_has_one_problem(services: dict[str, Object], spec: Object, expected: str) -> None:
    [problem] = problems(services, **spec)
    assert expected in problem
    if "metadata" in spec:
        assert problem.startswith(f"metadata.annotations[{next(iter(spec['metadata']['annotations']))}]: ")


@pytest.mark.parametrize(
    ("service", "spec"),
    [
        ({}, {}),
        *(({}, annotated(key, value)) for key in ("paused", "suspend") for value in ("true", "false")),
        *(({}, annotated("worker-rollout", mode)) for mode in ("managed", "native")),
        *(({"disruptionBudget": it}, {}) for it in ({}, {"minAvailable": 0}, {"maxUnavailable": "100%"})),
        ({"labels": {"nvidia.com/dynamo-component": "mine"}}, {}),
        ({}, {"pvcs": [{**PVC, "volumeAccessMode": "ReadOnlyMany"}]}),
    ],
)
def test_a_graph_has_no_problem(service: Object, spec: Object) -> None:
    assert [] == problems({"Frontend": a_service("frontend"), "Worker": a_service(**service)}, **spec)


@pytest.mark.parametrize(
    ("service", "factor", "expected"),
    [
        ({"replicas": 2}, 75_001, "150002 (limit 150000)"),
        ({"replicas": 2}, 75_000, None),
        ({"replicas": 2, "scalingAdapter": {"enabled": True}}, 2**30, None),
        ({"replicas": 11, "multinode": {"nodeCount": 2}}, 100, "1100 (limit 1000)"),
    ],
)
def test_no_factor_makes_a_service_larger_than_it_can_be(
    service: Object, factor: int, expected: str | None
) -> None:
    reported = problems({"w": a_service(extraPodSpec=RUN, **service)}, replicas=factor)
    message = f"spec.replicas: {factor} times the replicas of w is {expected}"
    assert ([message] if expected else []) == reported


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("labels", "nvidia.com/dynamo-component"),
        ("labels", "nvidia.com/selector"),
        ("labels", "role"),
        ("annotations", "nvidia.com/enable-grove"),
        ("annotations", "nvidia.com/last-applied-hash"),
    ],
)
def test_a_graph_cannot_use_reserved_keys_and_the_message_lists_them(field: str, key: str) -> None:
    [problem] = problems({"w": a_service()}, **{field: {key: "x"}})
    path, _, message = problem.partition(": ")
    assert f"spec.{field}[{key}]" == path
    assert key in message.partition("reserved keys: ")[2].rstrip(")").split(", ")


def test_the_labels_of_a_graph_must_be_labels() -> None:
    wrong = {"a b": "x", "team": "-", "app.kubernetes.io/part-of": "fine"}
    assert ["spec.labels[a b]", "spec.labels[team]"] == [
        problem.partition(": ")[0] for problem in problems({"w": a_service()}, labels=wrong)
    ]


@pytest.mark.parametrize(
    "budget",
    [
        {"minAvailable": 1, "maxUnavailable": 1},
        {"minAvailable": -1},
        {"maxUnavailable": "101%"},
        {"maxUnavailable": "half"},
        {"minAvailable": "9" * 5000},
        {"minAvailable": "00000000001" + "0" * 5000},
    ],
)
def test_a_budget_has_one_bound_that_kubernetes_understands(budget: Object) -> None:
    [problem] = problems({"w": a_service(disruptionBudget=budget)})
    assert problem.startswith("spec.services.w.disruptionBudget")


def test_a_default_ingress_needs_a_host_that_can_exist() -> None:
    settings = RenderSettings(ingress_class_name="nginx", ingress_host_suffix="not a host")
    [problem] = problems({"Frontend": a_service("frontend")}, settings=settings)
    assert 'spec.services.Frontend.ingress.host: invalid host name "chat.not a host"' == problem


SETTINGS = RenderSettings(allowed_gateways="*")
POD: Object = {"mainContainer": {"image": "r/x:1", "args": ["run"]}}
CLAIM: Object = {"resourceClaims": [{"name": "c", "resourceClaimName": "x"}], **POD}
INGRESS: Object = {"enabled": True, "host": "h", "ingressControllerClassName": "n"}
ISTIO: Object = {"enabled": True, "host": "h", "useVirtualService": True, "virtualServiceGateway": "g"}
EPP: Object = {"componentType": "epp", "eppConfig": {"config": {"plugins": [], "schedulingProfiles": []}}}
OTHER: Object = {"name": "b", "size": "2Gi", "storageClass": "slow", "volumeAccessMode": "ReadWriteOnce"}
TWO: Object = {"multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": "8"}}}
ONE_GPU: Object = {"resources": {"limits": {"gpu": "1"}}}
MOUNT: list[Object] = [{"name": "a", "mountPoint": "/a"}]
MAP: Object = {"a": "b"}
ENVS = [{"name": "A", "value": "b"}]


Edit = tuple[str, Object, Object]
"""A field, and a spec without and with a value of it."""


def of(field: str, /, value: Any, **others: Any) -> Edit:
    """An edit of a field, which may be in another one."""
    outer, _, inner = field.partition(".")
    if not inner:
        return field, others, {**others, field: value}
    nested = others.get(outer, {})
    is_list = isinstance(nested, list)
    before: Any
    after: Any
    _, before, after = of(inner, value, **(nested[0] if is_list else nested))
    before, after = ([before], [after]) if is_list else (before, after)
    return field, {**others, outer: before}, {**others, outer: after}


def plain_edits() -> Iterator[Edit]:
    """An edit of each switch, number and text of a service."""
    hints, plain = get_type_hints(ComponentSpec), ((bool, True), (int, 3), (str, "other"))
    for field in msgspec.structs.fields(ComponentSpec):
        if field.name in ("min_available", "runtime_version_override"):
            continue
        values = (value for type_, value in plain if hints[field.name] in (type_, type_ | None))
        yield from (of(field.encode_name, value) for value in values)


def side(field: str, value: Any, **others: Any) -> Iterator[Edit]:
    for name in ("requests", "limits"):
        yield of(f"resources.{name}.{field}", value, resources={name: others})


SERVICE = [
    of("annotations", {"example.com/a": "b"}),
    of("labels", MAP),
    *plain_edits(),
    of("autoscaling", {"enabled": True}),
    of("envs", ENVS),
    of("extraPodSpec", {**POD, "hostNetwork": True}),
    of("livenessProbe", {"httpGet": {"port": 1}}),
    of("readinessProbe", {"httpGet": {"port": 1}}),
    of("extraPodMetadata.labels", MAP),
    of("extraPodMetadata.annotations", MAP),
    *side("cpu", "1"),
    *side("memory", "1Gi"),
    *side("custom", {"rdma/ib": "1"}),
    *side("gpu", "1"),
    *side("gpuType", "gpu.intel.com/xe", gpu="1"),
    *side("gpuType", "gpu.intel.com/xe"),
    of("resources.claims", [{"name": "c"}], extraPodSpec=CLAIM),
    of("sharedMemory.disabled", value=True, sharedMemory={"size": "1Gi"}),
    of("sharedMemory.size", "1Gi", sharedMemory={"disabled": True}),
    of("modelRef.name", "other", modelRef={"name": "m"}),
    of("modelRef.revision", "r", modelRef={"name": "m"}),
    of("multinode.nodeCount", 3, **TWO),
    of("volumeMounts.name", "b", volumeMounts=MOUNT),
    of("volumeMounts.mountPoint", "/b", volumeMounts=MOUNT),
    of("disruptionBudget.minAvailable", 1),
    of("disruptionBudget.maxUnavailable", 1),
    of("eppConfig", EPP["eppConfig"]),
    of("minAvailable", 2, replicas=2),
    of("checkpoint", {"enabled": True}),
    of("failover", {"enabled": True}, gpuMemoryService={"enabled": True}, **ONE_GPU),
    of("frontendSidecar", {"image": "r/frontend:1"}),
    of("gpuMemoryService", {"enabled": True}, **ONE_GPU),
    of("ingress.enabled", value=True, ingress={**INGRESS, "enabled": False}),
    of("ingress.host", "other", ingress=INGRESS),
    of("ingress.hostPrefix", "p-", ingress=INGRESS),
    of("ingress.hostSuffix", "example.com", ingress=INGRESS),
    of("ingress.annotations", MAP, ingress=INGRESS),
    of("ingress.labels", MAP, ingress=INGRESS),
    of("ingress.tls.secretName", "t", ingress=INGRESS),
    of("ingress.tls.secretName", "t", ingress=ISTIO),
    of("ingress.ingressControllerClassName", "other", ingress=INGRESS),
    of("ingress.useVirtualService", value=True, ingress={**INGRESS, "virtualServiceGateway": "g"}),
    of("ingress.virtualServiceGateway", "other", ingress=ISTIO),
    of("ingress.virtualServiceGateway", "other", ingress=INGRESS),
]

SPEC = [
    of("envs", ENVS),
    of("labels", MAP),
    of("annotations", {"example.com/a": "b"}),
    of("replicas", 2),
    of("restart.id", "1", restart={"id": "0"}),
    of("pvcs.create", value=True, pvcs=[{**PVC, "create": False}]),
    *(of(f"pvcs.{field}", value, pvcs=[PVC]) for field, value in OTHER.items()),
    *(
        of(f"pvcs.{field}", value, pvcs=[{"name": "a"}])
        for field, value in PVC.items()
        if field not in ("name", "create")
    ),
    of("pvcs.retain", value=True, pvcs=[{"name": "a"}]),
    of("experimental.kvTransferPolicy", {"domain": "rack", "labelKey": "rack"}),
    of("priorityClassName", "high"),
    of("topologyConstraint", {"topologyProfile": "t", "packDomain": "zone"}),
]

ELSEWHERE = {
    "backendFramework": "of engines on several nodes; part of tests/golden",
    "progressDeadlineSeconds": "when the status reports a rollout as stalled",
    "restart.strategy.type": "the order in which restarts begin",
    "restart.strategy.order": "the same",
    "services.scalingAdapter.enabled": "a DynamoGraphDeploymentScalingAdapter, which the controller applies",
    "services.eppConfig.config": "of endpoint pickers; part of tests/golden",
    "services.eppConfig.configMapRef": "the same",
    "services.topologyConstraint": "none, as of a graph; it requires the graph's",
    "services.runtimeVersionOverride": "the warning about an image without a version",
    "services.volumeMounts.useAsCompilationCache": "of engines; part of tests/golden",
}
"""Fields whose effect is in no object that is rendered here."""


def document(service: Object, **spec: Any) -> Object:
    whole = {"componentType": "worker", "extraPodSpec": POD, **service}
    return graph({"w": whole}, **spec)


def objects(body: Object, *, grove: bool) -> list[Object]:
    facts = Facts(grove_served=grove, lws_served=True, istio_served=True)
    expansion = expanded(body, facts, SETTINGS)
    assert () == expansion.problems
    return [it for it in expansion.objects if not it["kind"].startswith("Dynamo")]


def is_reported(field: str, body: Object, *, grove: bool) -> bool:
    """Whether a warning is about the field, or one that contains it."""
    placed = with_provider(msgspec.convert(body, DynamoGraphDeployment), Facts(grove_served=grove))
    paths = (re.sub(r"\[\d+\]", "", problem.path) for problem in graph_warnings(placed))
    return any(f"{field}.".startswith(f"{path}.") for path in paths)


def has_effect(field: str, old: Object, new: Object, *, grove: bool) -> bool:
    is_changed = objects(old, grove=grove) != objects(new, grove=grove)
    return is_changed or is_reported(field, new, grove=grove)


@pytest.mark.parametrize("grove", [False, True], ids=["deployments", "grove"])
@pytest.mark.parametrize("edit", SERVICE, ids=str)
def test_a_field_of_a_service_has_an_effect_or_a_warning(edit: Edit, grove: bool) -> None:
    field, before, after = edit
    path = f"spec.services.w.{field}"
    assert has_effect(path, document(before), document(after), grove=grove)


@pytest.mark.parametrize("edit", SPEC, ids=str)
def test_a_field_of_a_graph_has_an_effect_or_a_warning(edit: Edit) -> None:
    field, before, after = edit
    old, new = document({}, **before), document({}, **after)
    assert has_effect(f"spec.{field}", old, new, grove=False)


def test_every_field_is_edited_above() -> None:
    edited = {f"services.{field}" for field, *_ in SERVICE} | {field for field, *_ in SPEC}
    missing = [
        field
        for field in leaves(DynamoGraphDeploymentSpec)
        if field not in ELSEWHERE and not any(it.startswith(field) for it in edited)
    ]
    assert [] == missing, "add an edit of the new field"


def leaves(struct: type[Struct], path: str = "") -> Iterator[str]:
    """The paths of all fields that have no fields of their own."""
    hints = get_type_hints(struct)
    for field in msgspec.structs.fields(struct):
        at = f"{path}{field.encode_name}"
        inner = nested(hints[field.name])
        yield from leaves(inner, f"{at}.") if inner else [at]


def nested(hint: Any) -> type[Struct] | None:
    """The struct in an annotation: optional, in a list or a map."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint
    return next(filter(None, map(nested, get_args(hint))), None)


def test_a_source_that_no_model_loads() -> None:
    (warning,) = verdict(model(modelType="base", source={"uri": "hf://m"})).warnings
    assert 'spec.source: has no effect with modelType "base"' == warning


def test_what_services_share_counts_once_for_each_of_them() -> None:
    envs = tuple({"name": f"V{number}", "value": "x" * 90} for number in range(100))
    services: dict[str, dict[str, str]] = {f"s{number}": {} for number in range(20)}
    raw = {"metadata": {"name": "g"}, "spec": {"envs": envs, "services": services}}
    large = msgspec.convert(raw, DynamoGraphDeployment)
    found = graph_problems(large, RenderSettings(largest_object_bytes=40_000))
    assert any("in each of 20 services" in str(each) for each in found)
    assert not any("in each of" in str(each) for each in graph_problems(large, RenderSettings()))
