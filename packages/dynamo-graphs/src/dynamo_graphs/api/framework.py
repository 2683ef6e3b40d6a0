"""Detect which inference framework a component runs, from its command and the spec.

Detection matches exactly what a regular expression of the Go operator matches: any difference would
launch live graphs in another way. That expression takes cubic time in a text that users choose, so its
parts are searched one after the other.
"""

import re
from dataclasses import dataclass

from dynamo_graphs.api.backends import BACKENDS, NAMES, NOOP
from dynamo_graphs.api.component import WORKER_TYPES, ComponentSpec, DynamoComponentDeploymentSpec
from dynamo_graphs.api.graph import DynamoGraphDeployment

LORA_VARIABLE = "DYN_LORA_ENABLED"  # with `true` a worker loads LoRAs by their URIs
LORA_FLAG = "--enable-lora"  # without it vLLM serves no API for LoRAs
# A newline does not end a command; space is ASCII without vertical tab.
_SPACE = r"[\t\n\f\r ]"
_SEPARATOR = re.compile(r"[|&;]")
_PYTHON = re.compile(rf"python[0-9.]*{_SPACE}")
_MODULE = re.compile(rf"-m{_SPACE}")
_CACHE_PATHS = {backend.name: backend.cache_path for backend in BACKENDS}
_WITH_SSH_KEYS = frozenset(backend.name for backend in BACKENDS if backend.needs_ssh_keys)


@dataclass(frozen=True, slots=True)
class Framework:
    """The framework of a component. If it is unknown, `problem` is the reason and `name` is `noop`."""

    name: str = NOOP
    problem: str = ""


def framework(spec: DynamoComponentDeploymentSpec) -> Framework:
    """Return the framework that a component runs; `noop` for all but workers."""
    if spec.component_type not in WORKER_TYPES:
        return Framework()
    explicit = spec.backend_framework or ""
    if explicit and explicit not in NAMES:
        return Framework(
            problem=(f'unknown backend framework "{explicit}" (expected {", ".join(NAMES)})')
        )
    command = " ".join(_words(spec))
    detected = _started(command)
    if len(detected) > 1:
        if explicit:
            return Framework(explicit)
        names = " ".join(detected)
        return Framework(
            problem="could not determine backend framework: multiple backend frameworks detected "
            f'from command: [{names}] in "{command}"'
        )
    if detected and explicit and detected[0] != explicit:
        return Framework(
            problem=f'backend framework mismatch: detected "{detected[0]}" from command '
            f'but explicitly configured as "{explicit}"'
        )
    return Framework(detected[0] if detected else explicit or NOOP)


def _started(command: str) -> list[str]:
    """Sorted names of the frameworks that a command starts."""
    modules = [_behind_module_option(part) for part in _SEPARATOR.split(command)]
    return [name for name in sorted(NAMES) if any(f"dynamo.{name}" in module for module in modules)]


def _behind_module_option(command: str) -> str:
    """The text after the first `-m` of the first Python; "" without one."""
    python = _PYTHON.search(command)
    option = _MODULE.search(command, python.end()) if python else None
    return command[option.end() :] if option else ""


def declared_or_detected(spec: DynamoComponentDeploymentSpec) -> str | None:
    """The component's framework for display; None without one, or if it is unknown."""
    name = framework(spec).name
    return spec.backend_framework or (None if name == NOOP else name)


def frameworks(graph: DynamoGraphDeployment) -> str | None:
    """The graph's frameworks for display, separated by commas; None without any."""
    services = graph.spec.services.values()
    names = {declared_or_detected(as_component(graph, service)) for service in services}
    return graph.spec.backend_framework or ",".join(sorted(filter(None, names))) or None


def _words(spec: DynamoComponentDeploymentSpec) -> list[str]:
    container = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    parts = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [str(part) for part in parts]


def cache_path(name: str, mount_point: str | None, *, is_cache: bool) -> str:
    """Mount path of a volume; "" means that the user must set it."""
    return mount_point or (_CACHE_PATHS.get(name, "") if is_cache else "")


def as_component(
    graph: DynamoGraphDeployment, service: ComponentSpec
) -> DynamoComponentDeploymentSpec:
    """Convert a graph's service to the spec of its component, with the graph's framework."""
    fields = {name: getattr(service, name) for name in service.__struct_fields__}
    return DynamoComponentDeploymentSpec(**fields, backend_framework=graph.spec.backend_framework)


def needs_ssh_keys(graph: DynamoGraphDeployment) -> bool:
    """Whether a multinode service of the graph starts processes in its pods over SSH."""
    multinode = (service for service in graph.spec.services.values() if service.nodes > 1)
    return any(
        framework(as_component(graph, service)).name in _WITH_SSH_KEYS for service in multinode
    )
