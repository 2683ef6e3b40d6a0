"""The planner's service, the ConfigMap with the curves that it reads, and the graph of simulated engines.

Flags are those of Dynamo 0.9.
"""

import json
import re

from dynamo_graphs.library.engines import ENGINES
from dynamo_profiler.base import (
    DECODE,
    FRONTEND,
    PLANNER,
    PREFILL,
    Backend,
    frontend_service,
    graph,
    worker_name,
    worker_service,
)
from dynamo_profiler.choice import Choice
from dynamo_profiler.configuration import Configuration, Mode
from dynamo_profiler.refusal import REFUSAL_CHARACTERS, Refusal
from kube_runtime.kind import Fields, Object
from kube_runtime.text import fitted

DATA = "planner-profile-data"
FOLDER = "/workspace/profiling_results"
_OWN = ("backend", "environment", "namespace")
_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,60}")
_HUMP = re.compile(r"(?<!^)(?<![-_])([A-Z])")
_TYPES = (str, int, float, bool)


def data_config_map(prefill: Fields, decode: Fields, name: str = DATA) -> Object:
    """The curves, by default under the name that all readers expect."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {
            "prefill_raw_data.json": json.dumps(prefill),
            "decode_raw_data.json": json.dumps(decode),
        },
    }


def planner_service(wanted: Configuration, choice: Choice, image: str, backend: str) -> Object:
    """A planner that keeps the targets by the curves. The user's options count more than the targets."""
    options: Object = {
        "ttft": wanted.targets.ttft * 1000,
        "itl": wanted.targets.itl * 1000,
        **_options(wanted.planner or {}),
        "prefill-engine-num-gpu": choice.roles[0].engine.gpus,
        "decode-engine-num-gpu": choice.roles[-1].engine.gpus,
        "profile-results-dir": FOLDER,
    }
    args = ["--environment=kubernetes", f"--backend={backend}", *_flags(options)]
    service: Object = {
        "componentType": "planner",
        "replicas": 1,
        "extraPodSpec": {
            "mainContainer": {
                "image": image,
                "workingDir": "/workspace/components/src/dynamo/planner",
                "command": ["python3", "-m", "planner_sla"],
                "args": args,
            }
        },
    }
    return _with_data(service)


def mocked_graph(
    name: str, wanted: Configuration, backend: Backend, choice: Choice, data: str = DATA
) -> Object:
    """The chosen graph with engines that only keep the time of the curves in `data`, and need no GPU."""
    image = wanted.image or backend.engine.image
    services: Object = {FRONTEND: frontend_service(image)}
    is_apart = choice.mode is Mode.DISAGGREGATED
    for role, each in zip((PREFILL, DECODE) if is_apart else ("",), choice.roles, strict=True):
        args = [
            "--model-path",
            wanted.model,
            "--model-name",
            wanted.model,
            "--speedup-ratio",
            "1.0",
        ]
        args += ["--planner-profile-data", FOLDER, *([f"--is-{role}-worker"] if role else [])]
        command = ("python3", "-m", "dynamo.mocker")
        worker = worker_service(role, image, "/workspace", command, args)
        services[worker_name(role)] = _with_data({**worker, "replicas": each.replicas}, data)
    if wanted.planner is not None:
        services[PLANNER] = planner_service(wanted, choice, image, "mocker")
    return graph(name, services)


def default_planner_image() -> str:
    """Where a graph's frontend names no image."""
    return ENGINES["vllm"].image


def _options(section: Fields) -> Object:
    """The user's options by the names of flags; `planner_` in front of a key is taken off."""
    found: Object = {}
    mistakes: list[str] = []
    for key, value in section.items():
        name = str(key).removeprefix("planner_")
        if not _OPTION.fullmatch(name) or not isinstance(value, _TYPES):
            rule = "must be a flag of the planner with one plain value"
            mistakes.append(f"planner.{key!s:.60} {rule}")
        found[_HUMP.sub(r"-\1", name).replace("_", "-").lower()] = value
    if mistakes:
        raise Refusal(fitted(mistakes, REFUSAL_CHARACTERS))
    return {name: value for name, value in found.items() if name not in _OWN}


def _flags(options: Fields) -> list[str]:
    """A true flag stands alone, a false one is left out."""
    flags: list[str] = []
    for name, value in options.items():
        if value is True:
            flags.append(f"--{name}")
        elif value is not False:
            flags.append(f"--{name}={value:g}" if isinstance(value, float) else f"--{name}={value}")
    return flags


def _with_data(service: Object, data: str = DATA) -> Object:
    pod = service["extraPodSpec"]
    mount = {"name": DATA, "mountPath": FOLDER, "readOnly": True}
    container = {**pod["mainContainer"], "volumeMounts": [mount]}
    volumes = [{"name": DATA, "configMap": {"name": data}}]
    return {**service, "extraPodSpec": {"mainContainer": container, "volumes": volumes}}
