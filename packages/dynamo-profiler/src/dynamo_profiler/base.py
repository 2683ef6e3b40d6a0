"""The graphs that the profiler starts from when it is given none: one for each backend and mode.

Also what it must know of a backend's command line.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dynamo_graphs.api.component import GROUP, VERSION
from dynamo_graphs.library.engines import ENGINES, Engine
from dynamo_profiler.arguments import value_of, with_value
from dynamo_profiler.refusal import Refusal
from kube_runtime.kind import Object

FRONTEND, PLANNER = "Frontend", "Planner"
PREFILL, DECODE = "prefill", "decode"
_OVERRIDES = "--override-engine-args"


@dataclass(frozen=True, slots=True)
class Backend:
    """One inference engine, and what the profiler changes and recognizes in its workers' arguments."""

    engine: Engine
    with_gpus: Callable[[Sequence[str], int], list[str]]
    prefill_marks: tuple[tuple[str, str], ...]


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


_MODE = "--disaggregation-mode"

BACKENDS = {
    each.engine.name: each
    for each in (
        Backend(
            ENGINES["vllm"],
            with_gpus=_tensor_parallel("--tensor-parallel-size", "-tp"),
            prefill_marks=(("--is-prefill-worker", ""), (_MODE, PREFILL)),
        ),
        Backend(
            ENGINES["sglang"],
            with_gpus=_tensor_parallel("--tp", "--tp-size", "--tensor-parallel-size"),
            prefill_marks=((_MODE, PREFILL),),
        ),
        Backend(ENGINES["trtllm"], with_gpus=_override, prefill_marks=((_MODE, PREFILL),)),
    )
}


def base_graph(backend: Backend, name: str, image: str, *, is_disaggregated: bool) -> Object:
    """A graph with a frontend and one worker of each role; model and sizes are not in it yet.

    An empty `image` means: that of the backend.
    """
    engine = backend.engine
    image = image or engine.image
    services: Object = {FRONTEND: frontend_service(image)}
    roles = (
        ((PREFILL, engine.prefill), (DECODE, engine.decode))
        if is_disaggregated
        else (("", engine.aggregated),)
    )
    for role, flags in roles:
        args = [*engine.model_args(""), *engine.common, *flags]
        worker = worker_service(role, image, engine.folder, engine.command, args)
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
