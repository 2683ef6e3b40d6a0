"""The planner's service, the graph of simulated engines, and the curves that both read.

The curves are the times of prefill and decode over their whole range, as sweeps of real engines measure them:
one request for prefill, plain steps for decode. Dynamo 0.9 interpolates with cubic splines, which
need at least four different lengths. The flags are those of Dynamo 0.9 as well.

Units of curves: milliseconds, tokens per second and GPU.
"""

import json
import re

from dynamo_profiler import REFUSAL_CHARACTERS, Refusal
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
from dynamo_profiler.engine import Engine
from kube_runtime.types.meta import Fields, Object, fitted

DATA = "planner-profile-data"
FOLDER = "/workspace/profiling_results"
_OWN = ("backend", "environment", "namespace")
_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,60}")
_HUMP = re.compile(r"(?<!^)(?<![-_])([A-Z])")
_TYPES = (str, int, float, bool)
_SHORTEST = 100
_MIN_LENGTHS = 4
_MIN_LOAD, _MAX_LOAD = 0.05, 0.95


def data_config_map(prefill: Fields, decode: Fields, name: str = DATA) -> Object:
    """The ConfigMap of the curves, by default with the name that planners expect."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"prefill_raw_data.json": json.dumps(prefill), "decode_raw_data.json": json.dumps(decode)},
    }


def prefill_curve(engine: Engine, longest: int, points: int) -> Object:
    """The time to first token by prompt length, evenly over the range."""
    lengths = _lengths(longest, max(points, _MIN_LENGTHS))
    times = [engine.first_token_seconds(length) for length in lengths]
    return {
        "prefill_isl": lengths,
        "prefill_ttft": [_rounded(1000 * seconds) for seconds in times],
        "prefill_thpt_per_gpu": [
            _rounded(length / time / engine.gpus) for length, time in zip(lengths, times, strict=True)
        ],
    }


def decode_curve(engine: Engine, longest: int, points: int) -> Object:
    """The time between tokens by context length and usage of the KV cache."""
    rows: list[tuple[float, ...]] = []
    capacity = engine.cache_tokens
    for context in _lengths(min(longest, capacity), points):
        for step in range(points):
            share = _MIN_LOAD + (_MAX_LOAD - _MIN_LOAD) * step / (points - 1)
            batch = max(1, min(round(share * capacity / context), capacity // context))
            seconds = engine.step_seconds(batch, context)
            rate = batch / seconds / engine.gpus
            rows.append((batch * context / capacity, context, 1000 * seconds, rate))
    names = ("x_kv_usage", "y_context_length", "z_itl", "z_thpt_per_gpu")
    columns = zip(*rows, strict=True)
    curve = {name: [_rounded(x) for x in column] for name, column in zip(names, columns, strict=True)}
    return {**curve, "max_kv_tokens": capacity}


def planner_service(configuration: Configuration, choice: Choice, image: str, backend: str) -> Object:
    """A planner with the targets and the curves. The user's options override the targets."""
    options: Object = {
        "ttft": configuration.targets.ttft * 1000,
        "itl": configuration.targets.itl * 1000,
        **_options(configuration.planner or {}),
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
    name: str, configuration: Configuration, backend: Backend, choice: Choice, data: str = DATA
) -> Object:
    """The choice with simulated engines, which need no GPU and keep the times in the ConfigMap `data`."""
    image = configuration.image or backend.engine.image
    services: Object = {FRONTEND: frontend_service(image)}
    is_apart = choice.mode is Mode.DISAGGREGATED
    for kind, role in zip((PREFILL, DECODE) if is_apart else ("",), choice.roles, strict=True):
        args = [
            "--model-path",
            configuration.model,
            "--model-name",
            configuration.model,
            "--speedup-ratio",
            "1.0",
        ]
        args += ["--planner-profile-data", FOLDER, *([f"--is-{kind}-worker"] if kind else [])]
        command = ("python3", "-m", "dynamo.mocker")
        worker = worker_service(kind, image, "/workspace", command, args)
        services[worker_name(kind)] = _with_data({**worker, "replicas": role.replicas}, data)
    if configuration.planner is not None:
        services[PLANNER] = planner_service(configuration, choice, image, "mocker")
    return graph(name, services)


def _options(section: Fields) -> Object:
    """The user's options by the names of flags, without the prefix `planner_`."""
    options: Object = {}
    mistakes: list[str] = []
    for key, value in section.items():
        name = str(key).removeprefix("planner_")
        if not _OPTION.fullmatch(name) or not isinstance(value, _TYPES):
            rule = "must be a flag of the planner with one plain value"
            mistakes.append(f"planner.{key!s:.60} {rule}")
        options[_HUMP.sub(r"-\1", name).replace("_", "-").lower()] = value
    if mistakes:
        raise Refusal(fitted(mistakes, REFUSAL_CHARACTERS))
    return {name: value for name, value in options.items() if name not in _OWN}


def _flags(options: Fields) -> list[str]:
    """Options as arguments: true as a flag without a value, false not at all."""
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


def _lengths(longest: int, points: int) -> list[int]:
    """Lengths evenly from 100 to the longest, without duplicates."""
    last = max(longest, _SHORTEST)
    first = min(longest, _SHORTEST, last - points + 1)
    return [first + (last - first) * point // (points - 1) for point in range(points)]


def _rounded(value: float) -> float:
    """Six digits: more than the accuracy, and a ConfigMap has a size limit."""
    return float(f"{value:.6g}")
