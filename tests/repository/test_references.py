"""Every field of our kinds that names another object has a rule for the name.

The fields come from the types. A new field of text is in no table below, so it fails here until it has a
rule.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment, DynamoNimRequest
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.validation import deployment_problems, nim_problems
from dynamo_legacy.validation import request_problems as build_problems
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.validate import component_problems
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.features.scaling.decide import adapter_problems
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.requests.validate import request_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.inert import INERT
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Object, Resource

ELSEWHERE = "../../victim/configmaps/base"
SETTINGS = RenderSettings()

RULES: dict[type[Resource], Callable[[Any], Iterable[Problem]]] = {
    DynamoGraphDeployment: lambda graph: graph_problems(graph, SETTINGS),
    DynamoComponentDeployment: lambda component: component_problems(component, SETTINGS),
    DynamoGraphDeploymentRequest: lambda request: request_problems(request, SETTINGS),
    DynamoNimDeployment: lambda nim: nim_problems(nim, SETTINGS, LegacySettings()),
    DynamoNimRequest: lambda request: build_problems(request, SETTINGS),
    DynamoGraphDeploymentScalingAdapter: adapter_problems,
    DynamoDeployment: lambda deployment: deployment_problems(deployment, SETTINGS, LegacySettings()),
}

_PROFILING = "spec.profilingConfig"
_INGRESS: Object = {"enabled": True, "host": "chat"}
_OF_COMPONENT: dict[str, Object] = {
    "envFromSecret": {},
    "ingress.ingressControllerClassName": {"ingress": _INGRESS},
    "ingress.tls.secretName": {"ingress": _INGRESS},
    "ingress.virtualServiceGateway": {"ingress": {**_INGRESS, "useVirtualService": True}},
}
_OF_TODAY: dict[str, Object] = {
    **_OF_COMPONENT,
    "volumeMounts[].name": {},
    "eppConfig.configMapRef.name": {"componentType": "epp"},
}
REFERENCES: dict[type[Resource], dict[str, Object]] = {
    DynamoComponentDeployment: {f"spec.{path}": {"spec": it} for path, it in _OF_TODAY.items()},
    DynamoGraphDeployment: {
        **{
            f"spec.services.chat.{path}": {"spec": {"services": {"chat": it}}}
            for path, it in _OF_TODAY.items()
        },
        "spec.priorityClassName": {},
        "spec.pvcs[].name": {},
        "spec.pvcs[].storageClass": {"spec": {"pvcs": [{"name": "a", "create": True}]}},
    },
    DynamoGraphDeploymentRequest: {
        f"{_PROFILING}.configMapRef.name": {},
        f"{_PROFILING}.outputPVC": {},
        f"{_PROFILING}.serviceAccountName": {},
        f"{_PROFILING}.priorityClassName": {},
        f"{_PROFILING}.runtimeClassName": {},
        f"{_PROFILING}.imagePullSecrets[].name": {},
        f"{_PROFILING}.config.deployment.modelCache.pvcName": {},
        "spec.deploymentOverrides.name": {},
        "spec.deploymentOverrides.namespace": {},
    },
    DynamoNimDeployment: {
        **{f"spec.{path}": {"spec": it} for path, it in _OF_COMPONENT.items()},
        "spec.dynamoNim": {},
        "spec.pvc.name": {},
        "spec.pvc.storageClass": {},
    },
    DynamoGraphDeploymentScalingAdapter: {"spec.dgdRef.name": {}},
    DynamoDeployment: {"spec.dynamoNim": {}},
    DynamoNimRequest: {
        "spec.bentoTag": {},
        "spec.dockerConfigJsonSecretName": {},
        "spec.source.oci.secretName": {},
        "spec.source.s3.secretName": {},
        "spec.source.http.headerSecretName": {},
        "spec.source.pvc.claimName": {},
        "spec.source.configMap.name": {},
    },
}
"""The fields that name an object, with what else a document needs for the field to count."""

IN_A_POD = {
    *("autoscaling", "behavior", "metrics", "claims", "envs", "extraPodSpec", "livenessProbe"),
    *("readinessProbe", "affinity", "env", "envFrom", "resources", "tolerations"),
    *("imageBuilderExtraPodSpec", "imageBuilderExtraContainerEnv", "imageBuilderContainerResources"),
    "downloaderContainerEnvFrom",
}
"""Fields with a schema of Kubernetes. They become part of a pod; the API server and the kubelet read them."""

NO_NAMES = {
    *("annotations", "labels", "nodeSelector", "podSelector", "custom", "cpu", "memory", "gpu"),
    *("gpuType", "size", "minAvailable", "maxUnavailable", "mountPoint", "volumeAccessMode"),
    *("componentType", "subComponentType", "backendFramework", "dynamoNamespace", "serviceName"),
    *("services", "host", "hostPrefix", "hostSuffix", "revision", "id", "order", "modelName"),
    *("baseModelName", "uri", "model", "profilerImage", "workersImage", "key", "data", "image"),
    *("dynamoTag", "tag", "downloadUrl", "ref", "endpoint", "url", "sha256", "path", "dockerfile"),
    *("bentomlVersion", "imageBuildTimeout", "buildArgs", "monitorExporter", "externalServices"),
    *("deploymentSelectorKey", "deploymentSelectorValue", "runtimeVersionOverride"),
}
"""Last parts of paths to text that names no object."""

STORED_ONLY = tuple(field.partition(".")[0] for fields in INERT.values() for field in fields)
"""Fields that nothing reads."""

NO_OBJECTS = {
    "modelRef.name",  # of a model, which the runtime loads
    "topologyConstraint",  # of Grove, whose set reports an unknown topology
    "eppConfig.config",  # of plugins, in the endpoint picker's own form
    "spec.profilingConfig.config",  # the profiler's own form; `modelCache.pvcName` is above
    "spec.profilingConfig.imagePullSecrets",  # their `name` is above
    "eppConfig.configMapRef",  # its `name` is above
    "spec.services",  # of a DynamoDeployment: overrides, which are a DynamoNimDeployment's spec
}


def kinds() -> Iterator[type[Resource]]:
    rest: list[type[Resource]] = [Resource]
    while rest:
        type_ = rest.pop()
        rest += type_.__subclasses__()
        if hasattr(type_, "DEFINITION") and type_.__module__.endswith(".api"):
            yield type_


TEXT: tuple[type, ...] = (inspect.StrType, inspect.AnyType, inspect.DictType, inspect.RawType)


def leaves(info: inspect.Type, path: str, of: tuple[type, ...] = TEXT) -> Iterator[str]:
    """The paths of all values of these types, by default of text and of values of any type."""
    match info:
        case inspect.Metadata(type=inner):
            yield from leaves(inner, path, of)
        case inspect.UnionType(types=types):
            for inner in types:
                yield from leaves(inner, path, of)
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from leaves(field.type, f"{path}.{field.encode_name}", of)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield from leaves(item, f"{path}[]", of)
        case inspect.DictType(value_type=inspect.StructType() as value):
            yield from leaves(value, f"{path}.chat", of)
        case _ if isinstance(info, of):
            yield path


def is_classified(type_: type[Resource], path: str) -> bool:
    plain = path.removesuffix("[]")
    return (
        path in REFERENCES.get(type_, {})
        or plain.rpartition(".")[2].removesuffix("[]") in IN_A_POD | NO_NAMES
        or plain.endswith((*NO_OBJECTS, *STORED_ONLY))
    )


def test_every_field_of_text_has_a_rule_or_names_no_object() -> None:
    fields = {
        (type_, path.removeprefix(".")): None
        for type_ in kinds()
        for path in leaves(inspect.type_info(type_.__annotations__["spec"]), ".spec")
    }
    assert len(fields) > 150
    unclassified = [f"{type_.__name__}.{path}" for type_, path in fields if not is_classified(type_, path)]
    assert [] == unclassified


def merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: merged(one.get(key), other.get(key)) for key in one | other}
    if isinstance(one, list) and isinstance(other, list):
        return [merged(*pair) for pair in zip(one, other, strict=True)]
    return one if other is None else other


def at(path: str, value: object) -> object:
    """The JSON value with a value at a path, such as `spec.pvcs[].name`."""
    first, _, rest = path.partition(".")
    inner = at(rest, value) if rest else value
    return {first.removesuffix("[]"): [inner] if first.endswith("[]") else inner}


NEEDED: dict[type[Resource], Object] = {
    DynamoGraphDeployment: {"services": {"chat": {"componentType": "worker"}}},
    DynamoComponentDeployment: {},
    DynamoGraphDeploymentRequest: {
        "model": "m",
        "backend": "vllm",
        "profilingConfig": {"profilerImage": "p:1"},
    },
    DynamoNimDeployment: {"dynamoNim": "chat"},
    DynamoNimRequest: {"bentoTag": "chat:1", "image": "chat:1"},
    DynamoGraphDeploymentScalingAdapter: {"replicas": 1, "dgdRef": {"name": "a", "serviceName": "a"}},
    DynamoDeployment: {"dynamoNim": "chat:1"},
}
CASES = [(type_, path) for type_, paths in REFERENCES.items() for path in paths]


@pytest.mark.parametrize(("type_", "path"), CASES, ids=lambda it: getattr(it, "__name__", it))
@pytest.mark.parametrize("name", [ELSEWHERE, "..", "..:..", "a:.", "a/b/c", "a?b=c", "%2e%2e%2fb", "x" * 254])
def test_a_name_that_is_a_path_is_a_problem_of_its_field(type_: type[Resource], path: str, name: str) -> None:
    document = merged({"spec": NEEDED[type_]}, REFERENCES[type_][path])
    body = {"metadata": {"name": "chat", "namespace": "lab"}, **merged(document, at(path, name))}
    problems = RULES[type_](msgspec.convert(body, type_))
    at_field = path.replace("[]", "[0]")
    assert at_field in {problem.path for problem in problems}


NUMBERS = [
    (type_, path.removeprefix("."))
    for type_ in kinds()
    for path in leaves(inspect.type_info(type_.__annotations__["spec"]), ".spec", (inspect.IntType,))
    if path.lower().endswith("replicas")
]


@pytest.mark.parametrize(("type_", "path"), NUMBERS, ids=lambda it: getattr(it, "__name__", it))
def test_every_number_of_replicas_has_a_bound(type_: type[Resource], path: str) -> None:
    needed = {**NEEDED[type_], "autoscaling": {"enabled": True, "maxReplicas": 1}}
    document = merged({"spec": needed}, at(path, 2**31 - 1))
    body = {"metadata": {"name": "chat", "namespace": "lab"}, **document}
    problems = RULES[type_](msgspec.convert(body, type_))
    is_ignored = "autoscaling" in path and type_ is not DynamoNimDeployment  # deprecated
    assert is_ignored is not (path in {problem.path for problem in problems})
