"""What `profile` and `new` are asked: the model, the GPUs and the targets."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Parameters
    ----------
    model
        Model as Hugging Face names it, for example Qwen/Qwen3-32B.
    model_config
        The model's config.json, for a model that is not built in.
    precision
        Take the published variant of a built-in model with these weights.
    backend
        Inference engine of the workers.
    gpu
        Type of GPU: a name of docs/profiler.md or a node's label.
    gpus_per_node
        GPUs of one node.
    max_gpus
        Most GPUs of the graph (default: unlimited).
    max_nodes
        Most nodes that one engine is cut over.
    ttft
        Most milliseconds to the first token.
    itl
        Most milliseconds between two tokens.
    isl
        Tokens of a prompt.
    osl
        Tokens of an answer.
    requests_per_second
        Load that determines the replicas.
    mode
        Whether prefill has workers of its own (default: the cheaper).
    engine
        What predicts: formulas, measured kernels, or the better of what is installed.
    margin
        Error of predictions to leave room for, for example 0.3 (default: the engine's own).
    """

    model: Annotated[str, Parameter(metavar="MODEL", show_default=False)]
    model_config: Annotated[Path | None, Parameter(metavar="FILE")] = None
    precision: Annotated[Literal["bf16", "fp8", "fp4"] | None, Parameter(show_default=False)] = None
    backend: Literal["vllm", "sglang", "trtllm"] = "vllm"
    gpu: Annotated[str, Parameter(metavar="NAME")] = "h100_sxm"
    gpus_per_node: Annotated[int, Parameter(metavar="NUMBER")] = 8
    max_gpus: Annotated[int, Parameter(metavar="NUMBER", show_default=False)] = 0
    max_nodes: Annotated[int, Parameter(metavar="NUMBER")] = 1
    ttft: Annotated[float, Parameter(metavar="MS")] = 500
    itl: Annotated[float, Parameter(metavar="MS")] = 50
    isl: Annotated[int, Parameter(metavar="TOKENS")] = 3000
    osl: Annotated[int, Parameter(metavar="TOKENS")] = 500
    requests_per_second: Annotated[float, Parameter(metavar="NUMBER")] = 1
    mode: Annotated[
        Literal["aggregated", "disaggregated"] | None, Parameter(show_default=False)
    ] = None
    engine: Literal["auto", "formulas", "kernels"] = "auto"
    margin: Annotated[float | None, Parameter(metavar="SHARE", show_default=False)] = None
