"""The profiler's own base graphs, one for each backend and mode, and the backends' command lines."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dynamo_graphs.engines import ENGINES, Engine
from dynamo_operator.component.api import GROUP, VERSION
from dynamo_profiler import Refusal
from dynamo_profiler.engine import Layout
from kube_runtime.types.meta import Object

FRONTEND, PLANNER = "Frontend", "Planner"
PREFILL, DECODE = "prefill", "decode"
_OVERRIDES = "--override-engine-args"


@dataclass(frozen=True, slots=True)
class Backend:
    """One inference engine, and the arguments of its workers that the profiler changes or recognizes."""

    engine: Engine
    with_layout: Callable[[Sequence[str], Layout], list[str]]
    prefill_marks: tuple[tuple[str, str], ...]


def _vllm_layout(args: Sequence[str], layout: Layout) -> list[str]:
    sized = _with_size(args, layout.tensor, "--tensor-parallel-size", "-tp")
    sized = _resized(sized, layout.pipeline, "--pipeline-parallel-size", "-pp")
    sized = _resized(sized, layout.data, "--data-parallel-size", "-dp")
    return _switched(sized, "--enable-expert-parallel", is_on=layout.data > 1)


def _sglang_layout(args: Sequence[str], layout: Layout) -> list[str]:
    """SGLang counts data-parallel attention as part of the tensor-parallel group."""
    spread = layout.tensor * layout.data
    sized = _with_size(args, spread, "--tp", "--tp-size", "--tensor-parallel-size")
    sized = _resized(sized, layout.pipeline, "--pp-size", "--pipeline-parallel-size")
    sized = _resized(sized, layout.data, "--dp-size", "--dp", "--data-parallel-size")
    experts = spread if layout.data > 1 else 1
    sized = _resized(sized, experts, "--ep-size", "--ep", "--expert-parallel-size")
    return _switched(sized, "--enable-dp-attention", is_on=layout.data > 1)


def _trtllm_layout(args: Sequence[str], layout: Layout) -> list[str]:
    """TensorRT-LLM counts data-parallel attention as part of the tensor-parallel group."""
    text = value_of(args, _OVERRIDES) or "{}"
    try:
        overrides = json.loads(text)
    except ValueError:
        overrides = None
    if not isinstance(overrides, dict):
        raise Refusal(f"{_OVERRIDES} of a worker in the base graph is not a JSON object: {text:.80}")
    spread, is_copied = layout.tensor * layout.data, layout.data > 1
    sizes: Object = {
        "pipeline_parallel_size": layout.pipeline,
        "enable_attention_dp": is_copied,
        "moe_expert_parallel_size": spread if is_copied else 1,
    }
    needed = {key: size for key, size in sizes.items() if key in overrides or size is True or size > 1}
    overrides |= {"tensor_parallel_size": spread, **needed}
    return with_value(args, _OVERRIDES, json.dumps(overrides))


def _with_size(args: Sequence[str], size: int, flag: str, *others: str) -> list[str]:
    """Set the first of these flags that is present, else add `flag`."""
    given = next((alias for alias in (flag, *others) if value_of(args, alias) is not None), flag)
    return with_value(args, given, str(size))


def _resized(args: Sequence[str], size: int, flag: str, *others: str) -> list[str]:
    """Like `_with_size`, but do not add a flag for 1, the default."""
    if size == 1 and all(value_of(args, alias) is None for alias in (flag, *others)):
        return list(args)
    return _with_size(args, size, flag, *others)


def _switched(args: Sequence[str], flag: str, *, is_on: bool) -> list[str]:
    """Add or remove a flag without a value."""
    if is_on and flag in args:
        return list(args)
    return [*(argument for argument in args if argument != flag), *([flag] if is_on else [])]


def value_of(args: Sequence[str], flag: str) -> str | None:
    """The value in `--flag value` or `--flag=value`; empty if there is no value, None without the flag."""
    for index, word in enumerate(args):
        name, equals, value = word.partition("=")
        if name != flag:
            continue
        if equals:
            return value
        following = args[index + 1] if index + 1 < len(args) else ""
        return "" if following.startswith("--") else following
    return None


def with_value(args: Sequence[str], flag: str, value: str) -> list[str]:
    """Set the value of a flag, in place of the old one or at the end."""
    kept = list(args)
    for index, word in enumerate(kept):
        name, equals, _ = word.partition("=")
        if name != flag:
            continue
        if equals:
            kept[index] = f"{flag}={value}"
        elif index + 1 < len(kept) and not kept[index + 1].startswith("--"):
            kept[index + 1] = value
        else:
            kept.insert(index + 1, value)
        return kept
    return [*kept, flag, value]


_MODE = "--disaggregation-mode"

BACKENDS = {
    backend.engine.name: backend
    for backend in (
        Backend(
            ENGINES["vllm"],
            with_layout=_vllm_layout,
            prefill_marks=(("--is-prefill-worker", ""), (_MODE, PREFILL)),
        ),
        Backend(
            ENGINES["sglang"],
            with_layout=_sglang_layout,
            prefill_marks=((_MODE, PREFILL),),
        ),
        Backend(ENGINES["trtllm"], with_layout=_trtllm_layout, prefill_marks=((_MODE, PREFILL),)),
    )
}


def base_graph(backend: Backend, name: str, image: str, *, is_disaggregated: bool) -> Object:
    """A graph with a frontend and one worker of each role, without model and sizes.

    An empty `image` is that of the backend.
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
    """A frontend."""
    return {
        "componentType": "frontend",
        "replicas": 1,
        "extraPodSpec": {"mainContainer": {"image": image}},
    }


def worker_name(role: str) -> str:
    """The name of the service of a role."""
    return role.capitalize() or "Worker"


def worker_service(role: str, image: str, folder: str, command: Sequence[str], args: Iterable[str]) -> Object:
    """A worker, aggregated if `role` is empty. The Secret is optional: public models need no token."""
    return {
        "componentType": "worker",
        **({"subComponentType": role} if role else {}),
        "replicas": 1,
        "extraPodSpec": {
            "mainContainer": {
                "image": image,
                "envFrom": [{"secretRef": {"name": "hf-token-secret", "optional": True}}],
                "workingDir": folder,
                "command": list(command),
                "args": list(args),
            }
        },
    }
