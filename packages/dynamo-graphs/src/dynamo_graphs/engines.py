"""The inference engines of Dynamo: their images, and the flags of their workers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dynamo_operator.component.api import WORKER_TYPES
from dynamo_operator.component.framework import LORA_FLAG
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Object

IMAGES = "nvcr.io/nvidia/ai-dynamo"
"""Registry and project of NVIDIA's runtime images."""

RELEASE = "0.9.0"
"""Version of Dynamo of these images and flags."""

Role: TypeAlias = Literal["", "prefill", "decode"]
"""The half of each request that a worker computes; "" for both."""

_MODE = "--disaggregation-mode"
_SGLANG_APART = (
    *("--disaggregation-transfer-backend", "nixl"),
    *("--disaggregation-bootstrap-port", "12345", "--host", "0.0.0.0"),  # noqa: S104  in a pod
)


@dataclass(frozen=True, slots=True)
class Engine:
    """One inference engine of Dynamo.

    `prefill` and `decode` are the flags of workers for one half of a request, `aggregated` those of
    workers on one GPU for both, `common` those of all, `lora` those of workers that load LoRAs.
    `tensor_parallel` is the flag for the GPUs that
    share each layer.
    """

    name: str
    image: str
    folder: str
    model_flags: tuple[str, ...]
    tensor_parallel: str
    common: tuple[str, ...] = ()
    aggregated: tuple[str, ...] = ()
    prefill: tuple[str, ...] = ()
    decode: tuple[str, ...] = ()
    lora: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """The command of a worker's container."""
        return ("python3", "-m", f"dynamo.{self.name}")

    def model_args(self, model: str) -> list[str]:
        """The flags that name the model."""
        return [word for flag in self.model_flags for word in (flag, model)]


def engine_file(name: str) -> tuple[str, str]:
    """The flag of a TensorRT-LLM worker for one of the engine configurations in its image."""
    return "--extra-engine-args", f"./examples/backends/trtllm/engine_configs/qwen3/{name}.yaml"


# The builders of graphs and the profiler's base graphs share them. Source: the backends' examples for
# Dynamo 0.9, which are also in `examples/`.
ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            name="vllm",
            image=f"{IMAGES}/vllm-runtime:{RELEASE}",
            folder="/workspace/examples/backends/vllm",
            model_flags=("--model",),
            tensor_parallel="--tensor-parallel-size",
            prefill=("--is-prefill-worker",),
            lora=(LORA_FLAG,),
        ),
        Engine(
            name="sglang",
            image=f"{IMAGES}/sglang-runtime:{RELEASE}",
            folder="/workspace/examples/backends/sglang",
            model_flags=("--model-path", "--served-model-name"),
            tensor_parallel="--tp",
            common=("--page-size", "16"),
            prefill=(_MODE, "prefill", *_SGLANG_APART),
            decode=(_MODE, "decode", *_SGLANG_APART),
        ),
        Engine(
            name="trtllm",
            image=f"{IMAGES}/tensorrtllm-runtime:{RELEASE}",
            folder="/workspace",
            model_flags=("--model-path", "--served-model-name"),
            tensor_parallel="--tensor-parallel-size",
            aggregated=engine_file("agg"),
            prefill=(*engine_file("prefill"), _MODE, "prefill"),
            decode=(*engine_file("decode"), _MODE, "decode"),
        ),
    )
}
"""By the value of `spec.backendFramework`."""


def worker_args(engine: Engine, model: str, role: Role, *, gpus: int, nodes: int) -> list[str]:
    """The arguments of a worker whose replicas have `gpus` GPUs on each of `nodes` nodes."""
    args = [*engine.model_args(model), *engine.common]
    flags = {"": engine.aggregated, "prefill": engine.prefill, "decode": engine.decode}[role]
    match engine.name:
        case "vllm":
            if gpus > 1:
                args += (engine.tensor_parallel, str(gpus))
            if nodes > 1:
                args += ("--pipeline-parallel-size", str(nodes))
        case "sglang":
            args += (engine.tensor_parallel, str(gpus * nodes))
        case _ if gpus * nodes > 1 and role:  # the file of the role sets a size of its own
            args += ("--override-engine-args", f'{{"tensor_parallel_size": {gpus * nodes}}}')
        case _ if gpus * nodes > 1:  # the file is for one GPU
            return [*args, engine.tensor_parallel, str(gpus * nodes)]
    return [*args, *flags]


_TENSOR_PARALLEL = ("--tensor-parallel-size", "--tp", "--tp-size", "-tp")
"""The flags of all engines, with their synonyms."""


def size_problems(service: Object, path: str) -> Iterator[Problem]:
    """Yield what is impossible about the GPUs of a service: a worker without, an engine that needs more."""
    limits = (service.get("resources") or {}).get("limits") or {}
    gpus = str(limits.get("gpu", ""))
    if not gpus.isdecimal():
        return  # not given, or reported by the schema
    if gpus == "0" and service.get("componentType") in WORKER_TYPES:
        expected = "expected at least 1 GPU for a worker; replicas=0 stops it"
        yield Problem(f"{path}.gpus", f'invalid value "0" ({expected})')
        return
    nodes = (service.get("multinode") or {}).get("nodeCount", 1)
    main = (service.get("extraPodSpec") or {}).get("mainContainer") or {}
    needed = _tensor_parallel(main.get("args"))
    if isinstance(nodes, int) and needed > int(gpus) * nodes > 0:
        several = f"gpus={gpus}, nodes={-(-needed // int(gpus))}, which is multinode"
        yield Problem(
            f"{path}.args",
            f"tensor parallelism over {needed} GPUs, but a replica has {int(gpus) * nodes} (expected more "
            f"GPUs, for example {several})",
        )


def _tensor_parallel(args: object) -> int:
    """The GPUs that share each layer, by the last of the flags; 0 if there is none."""
    words = args if isinstance(args, Sequence) and not isinstance(args, str) else ()
    needed = 0
    for word, following in zip(words, (*words[1:], ""), strict=False):
        flag, equals, value = str(word).partition("=")
        number = value if equals else str(following)
        if flag in _TENSOR_PARALLEL and number.isdecimal():
            needed = int(number)
    return needed
