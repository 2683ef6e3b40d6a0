"""Problems in the words of the version that the user wrote.

Rules are about an object in v1alpha1. If it was converted from v1beta1, its fields have other places there:
what v1alpha1 has beside the pod spec is in the container `main`, and services are a list.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Fields, Object

MAIN: Final = "main"
FRONTEND_SIDECAR: Final = "sidecar-frontend"
"""The container that the conversion makes of `frontendSidecar`."""

_SERVICE: Final = re.compile(r"spec\.services\.([^.\[]+)")
_ITEM: Final = re.compile(r"\[(\d+)\]")

# The longest prefix of a path that is in a table is replaced. `@` is the container `main`. Fields that are in
# no table have the same place in both versions.
_COMPONENT: Final = {
    "componentType": "type",
    "subComponentType": "type",
    "serviceName": "name",
    "checkpoint": "experimental.checkpoint",
    "envFromSecret": "@.envFrom",
    "envs": "@.env",
    "extraPodMetadata": "podTemplate.metadata",
    "extraPodSpec": "podTemplate.spec",
    "extraPodSpec.mainContainer": "@",
    "failover": "experimental.failover",
    "frontendSidecar.image": "frontendSidecar",
    "gpuMemoryService": "experimental.gpuMemoryService",
    "livenessProbe": "@.livenessProbe",
    "readinessProbe": "@.readinessProbe",
    "resources": "@.resources",
    "resources.limits.custom": "@.resources.limits",
    "resources.limits.gpu": "@.resources.limits[nvidia.com/gpu]",
    "resources.requests.custom": "@.resources.requests",
    "resources.requests.gpu": "@.resources.requests[nvidia.com/gpu]",
    "scalingAdapter.enabled": "scalingAdapter",
    "sharedMemory": "sharedMemorySize",
    "sharedMemory.disabled": "sharedMemorySize",
    "sharedMemory.size": "sharedMemorySize",
}
_OTHERS: Final = {
    "spec.dgdRef.serviceName": "spec.dgdRef.componentName",
    "spec.envs": "spec.env",
    "spec.services": "spec.components",
    "spec.topologyConstraint.topologyProfile": "spec.topologyConstraint.clusterTopologyName",
    "spec.useMocker": "spec.features.mocker.enabled",
    "spec.profilingConfig.profilerImage": "spec.image",
    "spec.profilingConfig.nodeSelector": "spec.overrides.profilingJob.template.spec.nodeSelector",
    "spec.profilingConfig.resources": "spec.overrides.profilingJob.template.spec.containers[0].resources",
    "spec.profilingConfig.tolerations": "spec.overrides.profilingJob.template.spec.tolerations",
    "spec.profilingConfig.config.deployment.modelCache.modelPathInPvc": "spec.modelCache.pvcModelPath",
    "spec.profilingConfig.config.deployment.modelCache.pvcMountPath": "spec.modelCache.pvcMountPath",
    "spec.profilingConfig.config.deployment.modelCache.pvcName": "spec.modelCache.pvcName",
    "spec.profilingConfig.config.planner": "spec.features.planner",
    "spec.profilingConfig.config.sla": "spec.sla",
    "spec.profilingConfig.config.sla.isl": "spec.workload.isl",
    "spec.profilingConfig.config.sla.osl": "spec.workload.osl",
}
_PRESERVED_OF_COMPONENT: Final = frozenset(
    ("annotations", "autoscaling", "dynamoNamespace", "ingress", "labels")
)
_PRESERVED: Final = {
    "spec.pvcs": "dgd",
    "spec.deploymentOverrides": "dgdr",
    "spec.enableGpuDiscovery": "dgdr",
    "spec.profilingConfig": "dgdr",
}
"""Fields that v1beta1 does not have: the annotation `nvidia.com/…-spec` preserves them."""
_LONGEST: Final = max(map(len, (*_COMPONENT, *_OTHERS, *_PRESERVED)))

_PHRASES: Final = {
    " (between single-node and multi-node)": " between single-node and multi-node",
    " (multinode field must be nil or nodeCount must be 1)": "",
    " when useAsCompilationCache is false": "",
    ". EPP requires the Gateway API Inference Extension to be installed. Please install the Gateway API": (
        "; install the Gateway API"
    ),
    "resources.limits.gpu": "podTemplate.spec.containers[main].resources.limits.nvidia.com/gpu",
    "extraPodSpec.mainContainer": "podTemplate.spec.containers[main]",
    "extraPodSpec": "podTemplate.spec",
    "extraPodMetadata": "podTemplate.metadata",
    "componentType": "type",
    "intraPod": "IntraPod",
    "interPod": "InterPod",
}
"""Words of messages in v1alpha1, and in v1beta1; a longer one comes before one that it contains."""

_PHRASE: Final = re.compile("|".join(map(re.escape, _PHRASES)))
_OWN_PATH: Final = re.compile(r"spec(?:\.[^\s:.\[]*+|\[[^\]]*+\])*+(?:: | )")
_PROSE: Final = re.compile(r'("[^"]*")|(?<!memory )\bservice(s?)\b')


@dataclass(frozen=True)
class Written:
    """An object as it was written, in v1beta1, and as rules see it, in v1alpha1.

    Of one that is only known as rules see it, `written` is empty: paths then have the names of components,
    containers and variables where the others have their numbers.
    """

    written: Object
    seen: Object

    def problem(self, problem: Problem) -> Problem:
        """The problem with the path of the written object, and in its words."""
        return replace(problem, path=self.path(problem.path), message=message(problem.message))

    def path(self, path: str) -> str:
        """The path in the written object of a path in the seen one."""
        if match := _SERVICE.match(path):
            name, field = match[1], path[match.end() :].removeprefix(".")
            service = (_inside(self.seen, "spec", "services") or {}).get(name) or {}
            index, component = self._components.get(name), None
            if index is not None:
                component = self.written["spec"]["components"][index]
            elif self.written:
                return "spec.components"
            at = f"spec.components[{name if index is None else index}]"
            return _component_path(at, field, component, service) or _preserved("dgd", path)
        if self.seen.get("kind") == "DynamoComponentDeployment" and path.startswith("spec."):
            field = path.removeprefix("spec.")
            component = (self.written.get("spec") or {}) if self.written else None
            service = self.seen.get("spec") or {}
            return _component_path("spec", field, component, service) or _preserved("dcd", path)
        for prefix in _prefixes(path):
            if prefix in _OTHERS:
                return _OTHERS[prefix] + path[len(prefix) :]
            if prefix in _PRESERVED:
                return _preserved(_PRESERVED[prefix], path)
        return path

    @cached_property
    def _components(self) -> dict[str, int]:
        components = _inside(self.written, "spec", "components") or ()
        return {one["name"]: index for index, one in enumerate(components) if "name" in one}


def message(text: str) -> str:
    """The message of a problem in the words of v1beta1, without a path at its beginning."""
    own = _OWN_PATH.match(text)
    text = text[own.end() :] if own else text
    text = _PHRASE.sub(lambda match: _PHRASES[match[0]], text)
    return _PROSE.sub(lambda match: match[1] or f"component{match[2]}", text)


def _preserved(kind: str, path: str) -> str:
    return f"metadata.annotations[nvidia.com/{kind}-spec].{path}"


def _component_path(at: str, field: str, component: Fields | None, service: Fields) -> str:
    """The path of a component's field, which is at `at`; "" for a field that v1beta1 does not have.

    `component` is None if it is not known as it was written.
    """
    if not field:
        return at
    containers: list[Fields] = _inside(component, "podTemplate", "spec", "containers") or []
    names = [container.get("name") for container in containers]
    main = "podTemplate.spec.containers"
    if component is None or MAIN in names:
        main += f"[{MAIN if component is None else names.index(MAIN)}]"
    first = re.split(r"[.\[]", field, maxsplit=1)[0]
    if first in _PRESERVED_OF_COMPONENT:
        return ""
    if first == "volumeMounts":
        return f"{at}.{_mount_path(field, component, service, main)}"
    field = _with_written_index(field, None if component is None else containers, service)
    for prefix in _prefixes(field):
        if prefix in _COMPONENT:
            place = _COMPONENT[prefix].replace("@", main)
            rest = "" if place == "sharedMemorySize" else field[len(prefix) :]
            return f"{at}.{place}{rest}"
    return f"{at}.{field}"


def _with_written_index(field: str, containers: list[Fields] | None, service: Fields) -> str:
    """The field with the index that an entry of a list has in the written object, or with its name."""
    main, spec = _main(containers or ()), service.get("extraPodSpec") or {}
    seen: Fields = spec.get("mainContainer") or {}
    lists: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
        "envs": (service.get("envs"), main.get("env"), ("name",)),
        "extraPodSpec.containers": (spec.get("containers"), containers, ("name",)),
        "extraPodSpec.mainContainer.env": (seen.get("env"), main.get("env"), ("name",)),
        "extraPodSpec.mainContainer.volumeMounts": (
            seen.get("volumeMounts"),
            main.get("volumeMounts"),
            ("name", "mountPath"),
        ),
    }
    for prefix, (entries, written, keys) in lists.items():
        item = _ITEM.match(field, len(prefix)) if field.startswith(prefix) else None
        if item is not None:
            entry = _entry(entries, int(item[1]))
            place = entry.get("name") if containers is None else _place(entry, written, keys)
            return prefix + ("" if place is None else f"[{place}]{field[item.end() :]}")
    return field


def _main(containers: Iterable[Fields]) -> Fields:
    return next((container for container in containers if container.get("name") == MAIN), {})


def _entry(entries: Any, index: int) -> Fields:
    return entries[index] if entries and index < len(entries) else {}


def _place(entry: Fields, written: Any, keys: tuple[str, ...]) -> int | None:
    """Where the written list has the entry, which these keys identify."""
    for index, other in enumerate(written or ()):
        if all((other.get(key) or "") == (entry.get(key) or "") for key in keys):
            return index
    return None


def _mount_path(field: str, component: Fields | None, service: Fields, main: str) -> str:
    """The path of a mount of a PVC: of the compilation cache, or of the container `main`."""
    item = _ITEM.match(field, len("volumeMounts"))
    mount = _entry(service.get("volumeMounts"), int(item[1]) if item else 0)
    if item is None or not mount:
        return f"{main}.volumeMounts"
    rest = field[item.end() :].replace(".mountPoint", ".mountPath")
    is_cache = component is None or component.get("compilationCache")
    if mount.get("useAsCompilationCache") and is_cache:
        return "compilationCache" + rest.replace(".name", ".pvcName")
    written = _main(_inside(component, "podTemplate", "spec", "containers") or ()).get("volumeMounts")
    seen = {"name": mount.get("name"), "mountPath": mount.get("mountPoint")}
    place = mount.get("name") if component is None else _place(seen, written, ("name", "mountPath"))
    return f"{main}.volumeMounts" + ("" if place is None else f"[{place}]{rest}")


def _inside(value: Any, *fields: str) -> Any:
    for field in fields:
        value = value.get(field) if isinstance(value, Mapping) else None
    return value


def _prefixes(path: str) -> Iterator[str]:
    """The path and its beginnings that end before a dot or a bracket, the longest first.

    None that is longer than the fields of the tables: a path with the keys of users has any length.
    """
    if len(path) <= _LONGEST:
        yield path
    for end in range(min(len(path) - 1, _LONGEST), 0, -1):
        if path[end] in ".[":
            yield path[:end]
