"""The profiler's own base graphs, one for each backend and mode, and the backends' command lines."""

import json
from collections.abc import Iterable, Sequence
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
    """One inference engine, and the arguments of its workers that the profiler changes or recognizes.

    `sizes` are the flags of tensor, pipeline, data and expert parallelism, each with its aliases; none if
    they are in a JSON object. `switch` is the flag of copies of attention. An engine that `spreads` counts
    them as part of the tensor-parallel group.
    """

    engine: Engine
    prefill_marks: tuple[tuple[str, str], ...]
    sizes: tuple[tuple[str, ...], ...] = ()
    switch: str = ""
    spreads: bool = True

    def with_layout(self, args: Sequence[str], layout: Layout) -> list[str]:
        """The arguments for engines of this layout. A flag for 1, the default, is not added."""
        is_copied, spread = layout.data > 1, layout.tensor * layout.data
        experts = spread if is_copied else 1
        if not self.sizes:
            return _with_overrides(args, layout, spread, experts)
        changed = list(args)
        tensor = spread if self.spreads else layout.tensor
        counts = (tensor, layout.pipeline, layout.data, experts)
        for aliases, size in zip(self.sizes, counts, strict=False):
            given = next((alias for alias in aliases if value_of(args, alias) is not None), "")
            if given or size > 1 or aliases is self.sizes[0]:
                changed = with_value(changed, given or aliases[0], str(size))
        if is_copied and self.switch in changed:
            return changed
        return [*(arg for arg in changed if arg != self.switch), *([self.switch] if is_copied else [])]


def _with_overrides(args: Sequence[str], layout: Layout, spread: int, experts: int) -> list[str]:
    text = value_of(args, _OVERRIDES) or "{}"
    try:
        overrides = json.loads(text)
    except ValueError:
        overrides = None
    if not isinstance(overrides, dict):
        raise Refusal(f"{_OVERRIDES} of a worker in the base graph is not a JSON object: {text:.80}")
    sizes: Object = {
        "pipeline_parallel_size": layout.pipeline,
        "enable_attention_dp": layout.data > 1,
        "moe_expert_parallel_size": experts,
    }
    needed = {key: size for key, size in sizes.items() if key in overrides or size is True or size > 1}
    overrides |= {"tensor_parallel_size": spread, **needed}
    return with_value(args, _OVERRIDES, json.dumps(overrides))


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
            (("--is-prefill-worker", ""), (_MODE, PREFILL)),
            (
                ("--tensor-parallel-size", "-tp"),
                ("--pipeline-parallel-size", "-pp"),
                ("--data-parallel-size", "-dp"),
            ),
            "--enable-expert-parallel",
            spreads=False,
        ),
        Backend(
            ENGINES["sglang"],
            ((_MODE, PREFILL),),
            (
                ("--tp", "--tp-size", "--tensor-parallel-size"),
                ("--pp-size", "--pipeline-parallel-size"),
                ("--dp-size", "--dp", "--data-parallel-size"),
                ("--ep-size", "--ep", "--expert-parallel-size"),
            ),
            "--enable-dp-attention",
        ),
        Backend(ENGINES["trtllm"], ((_MODE, PREFILL),)),
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
    return {"componentType": "frontend", "replicas": 1, "extraPodSpec": {"mainContainer": {"image": image}}}


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
