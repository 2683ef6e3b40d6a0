"""The graphs that the profiler starts from when it is given none: one for each backend and mode.

Also what it must know of a backend's command line. Source: the backends' own examples for Dynamo
0.9.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dynamo_graphs.api.component import GROUP, VERSION
from dynamo_profiler.arguments import value_of, with_value
from dynamo_profiler.refusal import Refusal
from kube_runtime.kind import Object

FRONTEND, PLANNER = "Frontend", "Planner"
PREFILL, DECODE = "prefill", "decode"
IMAGES = "nvcr.io/nvidia/ai-dynamo"
RELEASE = "0.9.0"
_OVERRIDES = "--override-engine-args"


@dataclass(frozen=True, slots=True)
class Backend:
    """One inference engine. `prefill` and `decode` are the flags of workers that do one half only."""

    name: str
    image: str
    folder: str
    model_flags: tuple[str, ...]
    with_gpus: Callable[[Sequence[str], int], list[str]]
    common: tuple[str, ...] = ()
    aggregated: tuple[str, ...] = ()
    prefill: tuple[str, ...] = ()
    decode: tuple[str, ...] = ()
    prefill_marks: tuple[tuple[str, str], ...] = field(default=())

    @property
    def module(self) -> str:
        """What Python runs."""
        return f"dynamo.{self.name}"


def _tensor_parallel(flag: str, *others: str) -> Callable[[Sequence[str], int], list[str]]:
    """Sets the first of these flags that is there, else adds `flag`."""

    def set_(args: Sequence[str], gpus: int) -> list[str]:
        given = next((each for each in (flag, *others) if value_of(args, each) is not None), flag)
        return with_value(args, given, str(gpus))

    return set_


def _override(args: Sequence[str], gpus: int) -> list[str]:
    text = value_of(args, _OVERRIDES) or "{}"
    try:
        overrides = json.loads(text)
    except ValueError:
        overrides = None
    if not isinstance(overrides, dict):
        raise Refusal(
            f"{_OVERRIDES} of a worker in the base graph is not a JSON object: {text:.80}"
        )
    return with_value(args, _OVERRIDES, json.dumps({**overrides, "tensor_parallel_size": gpus}))


def _engine_file(name: str) -> tuple[str, str]:
    return "--extra-engine-args", f"./examples/backends/trtllm/engine_configs/qwen3/{name}.yaml"


_SGLANG_APART = (
    *("--disaggregation-transfer-backend", "nixl"),
    *("--disaggregation-bootstrap-port", "12345", "--host", "0.0.0.0"),  # noqa: S104  in a pod
)
_MODE = "--disaggregation-mode"

BACKENDS = {
    each.name: each
    for each in (
        Backend(
            name="vllm",
            image=f"{IMAGES}/vllm-runtime:{RELEASE}",
            folder="/workspace/examples/backends/vllm",
            model_flags=("--model",),
            with_gpus=_tensor_parallel("--tensor-parallel-size", "-tp"),
            prefill=("--is-prefill-worker",),
            prefill_marks=(("--is-prefill-worker", ""), (_MODE, PREFILL)),
        ),
        Backend(
            name="sglang",
            image=f"{IMAGES}/sglang-runtime:{RELEASE}",
            folder="/workspace/examples/backends/sglang",
            model_flags=("--model-path", "--served-model-name"),
            with_gpus=_tensor_parallel("--tp", "--tp-size", "--tensor-parallel-size"),
            common=("--page-size", "16"),
            prefill=(_MODE, PREFILL, *_SGLANG_APART),
            decode=(_MODE, DECODE, *_SGLANG_APART),
            prefill_marks=((_MODE, PREFILL),),
        ),
        Backend(
            name="trtllm",
            image=f"{IMAGES}/tensorrtllm-runtime:{RELEASE}",
            folder="/workspace",
            model_flags=("--model-path", "--served-model-name"),
            with_gpus=_override,
            aggregated=_engine_file("agg"),
            prefill=(*_engine_file(PREFILL), _MODE, PREFILL),
            decode=(*_engine_file(DECODE), _MODE, DECODE),
            prefill_marks=((_MODE, PREFILL),),
        ),
    )
}


def base_graph(backend: Backend, name: str, image: str, *, is_disaggregated: bool) -> Object:
    """A graph with a frontend and one worker of each role; model and sizes are not in it yet.

    An empty `image` means: that of the backend.
    """
    image = image or backend.image
    services: Object = {FRONTEND: frontend_service(image)}
    roles = (
        ((PREFILL, backend.prefill), (DECODE, backend.decode))
        if is_disaggregated
        else (("", backend.aggregated),)
    )
    for role, flags in roles:
        command = ("python3", "-m", backend.module)
        worker = worker_service(
            role,
            image,
            backend.folder,
            command,
            [*model_args(backend, ""), *backend.common, *flags],
        )
        services[worker_name(role)] = worker
    return graph(name, services)


def graph(name: str, services: Object) -> Object:
    """A DynamoGraphDeployment with these services."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": name},
        "spec": {"services": services},
    }


def frontend_service(image: str) -> Object:
    """The service that answers users."""
    return {
        "componentType": "frontend",
        "replicas": 1,
        "extraPodSpec": {"mainContainer": {"image": image}},
    }


def worker_name(role: str) -> str:
    """The service of a role."""
    return role.capitalize() or "Worker"


def worker_service(
    role: str, image: str, folder: str, command: Sequence[str], args: Iterable[str]
) -> Object:
    """A worker; an empty role means: it does all."""
    return {
        "componentType": "worker",
        **({"subComponentType": role} if role else {}),
        "replicas": 1,
        "envFromSecret": "hf-token-secret",
        "extraPodSpec": {
            "mainContainer": {
                "image": image,
                "workingDir": folder,
                "command": list(command),
                "args": list(args),
            }
        },
    }


def model_args(backend: Backend, model: str) -> list[str]:
    """The flags that name the model."""
    return [word for flag in backend.model_flags for word in (flag, model)]
