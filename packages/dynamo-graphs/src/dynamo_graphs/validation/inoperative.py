"""Valid specs that cannot work as written: containers that exit at once, missing ports, unusable Ingresses.

The Go operator accepts them, so they are warnings. Each rule reports only what never works, because the
warning stays in the status for as long as the spec has the cause (`status/configuration.py`).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from dynamo_graphs.api.component import WORKER_TYPES, DynamoComponentDeploymentSpec
from dynamo_graphs.api.devices import Mode, gpus, mode, parallelism
from dynamo_graphs.api.entry_point import (
    has_only_flags,
    is_python,
    is_shell,
    several_flags,
    started,
)
from dynamo_graphs.api.framework import LORA_FLAG, LORA_VARIABLE, as_component, framework
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.validation import Problem, service_path
from dynamo_graphs.validation.ineffective import graph_ineffective, ineffective
from dynamo_graphs.validation.multinode import WITH_COMMAND
from dynamo_graphs.validation.pod import HANDLERS
from dynamo_graphs.validation.syntax import shown
from kube_runtime.kind import Fields

_PORTS: Final = {"frontend": "http"} | dict.fromkeys(WORKER_TYPES, "system")
_NUMBERS: Final = {"http": 8000, "system": 9090}
_PLANNERS: Final = frozenset(("dynamo.global_planner", "dynamo.planner", "planner_sla"))
_FLAGGED: Final = frozenset(("vllm", "sglang"))
"""Frameworks whose multinode launch consists of flags in the user's arguments."""


def graph_inoperative(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Warnings of a graph and all of its services."""
    for key, service in sorted(graph.spec.services.items()):
        yield from inoperative(as_component(graph, service), service_path(key))
    yield from graph_ineffective(graph)


def inoperative(spec: DynamoComponentDeploymentSpec, path: str) -> Iterator[Problem]:
    """Warnings of one component, whose spec is at `path` and has no problems."""
    written: Fields = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    at = f"{path}.extraPodSpec.mainContainer"
    name = framework(spec).name
    main = started(spec.component_type, name, written)
    yield from _command_warnings(spec, main, at)
    yield from _port_warnings(spec, main, at)
    yield from _planner_warnings(spec, main, at)
    if name == "vllm":
        yield from _lora_warnings(spec, main, at)
    if spec.nodes > 1:
        yield from _multinode_warnings(spec, name, main, path)
    yield from _ingress_warnings(spec, f"{path}.ingress")
    yield from ineffective(spec, path)


def _command_warnings(
    spec: DynamoComponentDeploymentSpec, main: Fields, path: str
) -> Iterator[Problem]:
    """Warn of a command that exits at once."""
    command, args = list(main.get("command") or ()), list(main.get("args") or ())
    has_own = spec.component_type in WITH_COMMAND
    runs_shell = is_shell(command) or not (command or has_own)
    shell = " ".join(command) or "/bin/sh -c"
    if runs_shell and not args:
        missing = "no arguments" if command else "neither command nor args"
        message = f'{missing}: the container runs "{shell}" without a script and exits at once'
        yield Problem(f"{path}.args", f"{message} (expected a command, or a script in args)")
    elif runs_shell and has_only_flags(args):
        message = f'"{shell}" cannot run the flag {shown(args[0])} as a script: set command'
        is_named = spec.component_type not in WORKER_TYPES or bool(command)
        hint = "" if is_named else ", or backendFramework to start its engine"
        message = f'{message}, for example ["python3", "-m", "dynamo.vllm"]{hint}'
        yield Problem(f"{path}.args", message)
    elif not command and spec.component_type == "frontend" and args and _is_script(args[0]):
        message = f'args replace "-m dynamo.frontend", and python3 finds no file {shown(args[0])}'
        message = f'{message} (expected "-m", "dynamo.frontend" first, or flags)'
        yield Problem(f"{path}.args", message)
    elif len(command) == 1 and is_python(command[0]) and has_only_flags(args):
        message = (
            f'{command[0]} does not accept the flag {shown(args[0])}: put "-m" and the module first'
        )
        yield Problem(f"{path}.args", message)
    elif command and not runs_shell and is_python(command[0]) and spec.nodes == 1:
        yield from _joined_flags(args, path)


def _joined_flags(args: Sequence[str], path: str) -> Iterator[Problem]:
    """Warn of arguments that contain several flags, where no shell splits them."""
    for index, arg in enumerate(args):
        if several_flags(arg):
            message = f"{shown(arg)} is one argument: the program receives all of it as one flag"
            yield Problem(f"{path}.args[{index}]", f"{message} (expected one argument per word)")


def _is_script(text: str) -> bool:
    """Whether Python would take the text for a file name although it cannot be one."""
    return not text.startswith("-") and (" " in text or not ("/" in text or "." in text))


def _planner_warnings(
    spec: DynamoComponentDeploymentSpec, main: Fields, path: str
) -> Iterator[Problem]:
    """Warn of a planner that may not scale anything."""
    words = " ".join(map(str, (*(main.get("command") or ()), *(main.get("args") or ())))).split()
    programs = [program for option, program in pairwise(words) if option == "-m"]
    has_account = (spec.extra_pod_spec or {}).get("serviceAccountName")
    if spec.component_type == "planner" or has_account or not _PLANNERS.intersection(programs):
        return
    message = (
        'only a service with componentType "planner" gets the ServiceAccount that may scale graphs'
    )
    yield Problem(f"{path}.args", f"{message} (set componentType, or serviceAccountName)")


def _lora_warnings(
    spec: DynamoComponentDeploymentSpec, main: Fields, path: str
) -> Iterator[Problem]:
    """Warn of a worker of vLLM that is meant to load LoRAs but has no API for them."""
    entries = (*(main.get("env") or ()), *spec.envs)
    values = {str(entry.get("name")): entry.get("value") for entry in entries}
    text = " ".join(map(str, (*(main.get("command") or ()), *(main.get("args") or ()))))
    could_be_elsewhere = "--config" in text or "$" in text
    if str(values.get(LORA_VARIABLE)).lower() != "true" or could_be_elsewhere:
        return
    if LORA_FLAG not in text.replace("_", "-"):
        message = f"{LORA_VARIABLE} is true, but vLLM has no API for LoRAs without {LORA_FLAG}"
        yield Problem(f"{path}.args", f"{message} (add it to args)")


def _port_warnings(
    spec: DynamoComponentDeploymentSpec, main: Fields, path: str
) -> Iterator[Problem]:
    """Warn of ports that replace the default ones but lack the one that probes and the Service name."""
    name = _PORTS.get(spec.component_type or "")
    ports = main.get("ports") or ()
    if not name or not ports or any(port.get("name") == name for port in ports):
        return
    if name == "system" and _has_own_probes(spec, main):
        return  # its Service then has no port, but no client uses it
    message = f'missing port "{name}", which the default probes and the Service use'
    entry = f'{{"name": "{name}", "containerPort": {_NUMBERS[name]}}}'
    yield Problem(f"{path}.ports", f"{message} (add {entry})")


def _has_own_probes(spec: DynamoComponentDeploymentSpec, main: Fields) -> bool:
    """Whether the user's probes replace all default probes of a worker."""
    whole = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return all(
        whole.get(probe) is not None
        or any((main.get(probe) or {}).get(handler) is not None for handler in HANDLERS)
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
    )


def _multinode_warnings(
    spec: DynamoComponentDeploymentSpec, name: str, main: Fields, path: str
) -> Iterator[Problem]:
    """Warn of multinode launches without effect."""
    command = list(main.get("command") or ())
    at = f"{path}.extraPodSpec.mainContainer"
    if name in _FLAGGED and len(command) > 2 and is_shell(command[:2]):  # noqa: PLR2004  # a script
        message = "the operator appends the flags of a multinode launch to args"
        yield Problem(f"{at}.command", f"{message}: move the script from command to args")
    elif name == "vllm" and mode(gpus(spec), parallelism(main)) is Mode.ALONE:
        message = (
            f"each of the {spec.nodes} nodes runs a separate server: no parallel size exceeds the "
            f"{gpus(spec)} GPUs of a node (expected --tensor-parallel-size, "
            "--pipeline-parallel-size or --data-parallel-size)"
        )
        yield Problem(f"{at}.args", message)


def _ingress_warnings(spec: DynamoComponentDeploymentSpec, path: str) -> Iterator[Problem]:
    """Warn of an Ingress or VirtualService that is not created, or not for the intended host."""
    ingress = spec.ingress
    if ingress is None or not ingress.enabled:
        return
    if ingress.use_virtual_service and not ingress.virtual_service_gateway:
        # Without gateways a VirtualService would apply to the whole mesh, so none is created.
        message = (
            "no VirtualService is created without a gateway: the operator's default gateway is for frontends "
            'that have no ingress of their own (expected a name, for example "istio-system/public")'
        )
        yield Problem(f"{path}.virtualServiceGateway", message)
    if not (ingress.ingress_controller_class_name or ingress.use_virtual_service):
        message = (
            "no Ingress is created without a class: the operator's default class applies only to "
            "frontends without an ingress of their own"
        )
        yield Problem(f"{path}.ingressControllerClassName", message)
    host = ingress.host or ""
    if "." in host and not ingress.host_suffix:
        first, _, rest = host.partition(".")
        message = (
            f'the host is "{ingress.host_prefix or ""}{host}.local", because "local" is appended '
            f"without hostSuffix (expected, for example, host: {first} and hostSuffix: {rest})"
        )
        yield Problem(f"{path}.host", message)
