"""`spec.overrides.profilingJob` of a request: a partial JobSpec, merged over the generated Job.

Its first container is the profiler, whatever its name. What the results depend on is the operator's: the
command, the copier, their volumes, the variables that identify the request, and how the Job ends.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from dynamo_operator.requests import api
from dynamo_operator.requests.render import SHORTEST_TTL_SECONDS
from dynamo_operator.requests.validate import is_own_label
from dynamo_operator.shared.problems import Problem, dotted
from dynamo_operator.versions.parts import some
from kube_runtime.merge import merged
from kube_runtime.types.meta import Fields, Object

_JOB: Final = ("activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_POD: Final = (
    *(
        "affinity",
        "dnsConfig",
        "dnsPolicy",
        "hostAliases",
        "imagePullSecrets",
        "initContainers",
        "nodeSelector",
    ),
    *("preemptionPolicy", "priorityClassName", "runtimeClassName", "schedulerName", "securityContext"),
    *("tolerations", "topologySpreadConstraints", "volumes"),
)
_PROFILER: Final = (
    *("env", "envFrom", "imagePullPolicy", "resources", "securityContext", "volumeDevices", "volumeMounts"),
)
_COPIER: Final = ("image", "imagePullPolicy", "resources")
_BASE: Final = ("spec", "overrides", "profilingJob")


@dataclass(frozen=True, slots=True)
class OverriddenJob:
    """The Job after the merge, and what of the override had no effect."""

    job: Object
    warnings: tuple[Problem, ...] = ()


def overridden_job(job: Object, override: Fields, schema: Fields) -> OverriddenJob:
    """The generated Job with the override over it. `schema` is that of a JobSpec.

    Raises:
        MergeError: the override has a value that cannot be merged; its path is that in the override.
    """
    reader = _Reader([])
    usable = reader.job(override, job["spec"]["template"]["spec"])
    if isinstance(seconds := usable.get("ttlSecondsAfterFinished"), int):
        usable["ttlSecondsAfterFinished"] = max(seconds, SHORTEST_TTL_SECONDS)
    spec = merged(_without_variables(job["spec"], usable), usable, schema)
    return OverriddenJob({**job, "spec": spec}, tuple(reader.warnings))


def _without_variables(spec: Fields, usable: Fields) -> Object:
    """The Job without the variables that the override has: a merged one would have two sources."""
    template = spec["template"]
    profiler, *others = template["spec"]["containers"]
    containers = usable.get("template", {}).get("spec", {}).get("containers", [])
    replaced = [variable for container in containers for variable in container.get("env") or ()]
    named = [variable.get("name") for variable in replaced if isinstance(variable, dict)]
    env = [variable for variable in profiler["env"] if variable["name"] not in named]
    pod = {**template["spec"], "containers": [{**profiler, "env": env}, *others]}
    return {**spec, "template": {**template, "spec": pod}}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Takes what is allowed out of an override, and warns of what it leaves out."""

    warnings: list[Problem]

    def job(self, override: Fields, pod: Fields) -> Object:
        usable = self._allowed(override, _JOB, _BASE, ("template",))
        template = override.get("template")
        if isinstance(template, dict):
            path = (*_BASE, "template")
            usable["template"] = {
                **self._allowed(template, (), path, ("metadata", "spec")),
                **self._metadata(template.get("metadata"), (*path, "metadata")),
                **self._pod(template.get("spec"), pod, (*path, "spec")),
            }
        return usable

    def _metadata(self, metadata: Any, path: tuple[str | int, ...]) -> Object:
        if not isinstance(metadata, dict):
            return {}
        allowed = self._allowed(metadata, ("labels", "annotations"), path)
        if isinstance(given := allowed.get("labels"), dict):
            for name in sorted(filter(is_own_label, given)):
                self._ignored((*path, "labels", name))
            allowed["labels"] = {name: given[name] for name in given if not is_own_label(name)}
        return {"metadata": allowed}

    def _pod(self, spec: Any, pod: Fields, path: tuple[str | int, ...]) -> Object:
        if not isinstance(spec, dict):
            return {}
        allowed = self._allowed(spec, _POD, path, ("containers",))
        own = [volume["name"] for volume in pod.get("volumes", ())]
        taken = [container["name"] for container in pod["containers"]]
        for name, reserved in (("volumes", own), ("initContainers", taken)):
            if isinstance(entries := allowed.pop(name, None), list):
                kept = self._unreserved(entries, "name", reserved, (*path, name))
                allowed |= {name: kept} if kept else {}
        if isinstance(containers := spec.get("containers"), list):
            allowed["containers"] = list(self._containers(containers, pod, (*path, "containers")))
        return {"spec": allowed}

    def _containers(
        self, containers: list[Any], pod: Fields, path: tuple[str | int, ...]
    ) -> Iterable[Object]:
        for at, container in enumerate(containers):
            if not isinstance(container, dict):
                continue
            where, name = (*path, at), container.get("name")
            if at == 0 and name != api.COPIER:
                yield {"name": api.PROFILER, **self._profiler(container, pod, where)}
            elif name == api.COPIER:
                yield {"name": api.COPIER, **self._allowed(container, _COPIER, where, ("name",))}
            else:
                self._ignored(where, "the Job has the containers profiler and output-copier only")

    def _profiler(self, container: Fields, pod: Fields, path: tuple[str | int, ...]) -> Object:
        allowed = self._allowed(container, _PROFILER, path, ("name",))
        mounted = [mount["mountPath"] for mount in pod["containers"][0].get("volumeMounts", ())]
        for name, key, reserved in (
            ("env", "name", api.OWN_VARIABLES),
            ("volumeMounts", "mountPath", mounted),
        ):
            if isinstance(allowed.get(name), list):
                allowed[name] = self._unreserved(allowed[name], key, reserved, (*path, name))
        return allowed

    def _allowed(
        self, given: Fields, names: Collection[str], path: tuple[str | int, ...], apart: Iterable[str] = ()
    ) -> Object:
        """The fields with these names; those `apart` are handled by the caller."""
        for name in sorted(given.keys() - {*names, *apart}):
            self._ignored((*path, name))
        return some(given, names)

    def _unreserved(
        self, entries: list[Any], key: str, reserved: Iterable[str], path: tuple[str | int, ...]
    ) -> list[Any]:
        kept = []
        for at, entry in enumerate(entries):
            value = entry.get(key) if isinstance(entry, dict) else None
            if isinstance(value, str) and value in reserved:
                self._ignored((*path, at), f'"{value}" is the operator\'s own')
            else:
                kept.append(entry)
        return kept

    def _ignored(self, path: tuple[str | int, ...], reason: str = "the operator sets it") -> None:
        self.warnings.append(Problem(dotted(path), f"ignored: {reason}"))
