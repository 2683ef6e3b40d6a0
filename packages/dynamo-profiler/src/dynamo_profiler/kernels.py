"""Engines whose times come from measured kernels, and the choice between them and formulas.

The database is optional (the extra `aiconfigurator`, 500 MB) and imported with the first engine. The
profiler uses its core only, which has the tables and adds up the kernels of a step; the search is the same as
with formulas (docs/decisions/0054-measured-kernels.md).
"""

import importlib
import json
import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias, cast

from dynamo_profiler import Refusal
from dynamo_profiler.engine import Accuracy, Engine, FormulaEngine, Layout
from dynamo_profiler.shape import Gpu, Shape
from kube_runtime.commandline import one_line
from kube_runtime.types.meta import Fields

INSTALL = "pip install './packages/dynamo-profiler[aiconfigurator]'"
"""Run in a clone: no package index has the packages of this repository."""
SYSTEMS: Mapping[str, str] = {
    "gb200_sxm": "gb200",
    "b200_sxm": "b200_sxm",
    "h200_sxm": "h200_sxm",
    "h100_sxm": "h100_sxm",
    "a100_sxm": "a100_sxm",
    "l40s": "l40s",
}
"""Our name of a GPU → the database's. Source: the folders of its release 0.12.0."""
PREFILL_CORRECTION = 1.24
DECODE_CORRECTION = 1.1
"""Measured times as a multiple of the sum of their kernels. Source: medians of the tables that
docs/profiler-accuracy.md marks as fitted."""
_MODULE = "aiconfigurator_core.sdk.engine"
_LOGGER = "aiconfigurator_core"
_SHORT_PROMPT = 128
_CACHE: Mapping[str, str] = {"kvcache_quant_mode": "bfloat16", "fmha_quant_mode": "bfloat16"}
"""`shape` counts a KV cache of bfloat16, whatever the weights are."""
_ERRORS = (ValueError, LookupError, RuntimeError, TypeError, AttributeError, OSError)
"""What the database raises for a missing table; it has no error class for that."""


class Kernels(Protocol):
    """The part of the database's engine that we use. Units: milliseconds."""

    def predict_prefill_latency(self, bs: int, isl: int) -> float:
        """The time of one pass over `bs` prompts of that length."""
        ...

    def decode_step_latency(self, gen_tokens: int, isl: int, osl: int) -> float:
        """The time of one token for each of `gen_tokens` requests after prompts of that length."""
        ...


class Database(Protocol):
    """The part of the database's module that we use."""

    def compile_engine(self, model_path: str, system: str, backend: str, **layout: int | str) -> bytes:
        """Look up the kernels of a model with this layout."""
        ...

    def EngineHandle(self, spec_bytes: bytes) -> Kernels:  # noqa: N802  the module's name
        """An engine of these kernels."""
        ...


@dataclass(frozen=True, slots=True)
class KernelEngine(Engine):
    """An engine on one node whose steps are sums of measured kernels."""

    source: ClassVar[str] = "kernels"
    accuracy: ClassVar[Accuracy] = Accuracy(ttft=0.25, itl=0.25)
    """Median errors for models and GPUs outside of the fit: docs/profiler-accuracy.md."""
    within: ClassVar[Accuracy] = Accuracy(ttft=0.63, itl=1)

    kernels: Kernels = field(kw_only=True, repr=False)

    def prefill_seconds(self, tokens: float) -> float:
        """The time that an otherwise idle engine takes for one prompt."""
        milliseconds = self.kernels.predict_prefill_latency(1, max(1, round(tokens)))
        return PREFILL_CORRECTION * milliseconds / 1000

    def step_seconds(self, batch: float, context: float) -> float:
        """The time of one decode step: one more token for each request of the batch."""
        batch_of_copy = max(1, round(batch / self.layout.data))
        milliseconds = self.kernels.decode_step_latency(batch_of_copy, max(1, round(context)), 2)
        return DECODE_CORRECTION * milliseconds / 1000


EngineName: TypeAlias = Literal["auto", "formulas", "kernels"]
ENGINES: tuple[EngineName, ...] = ("auto", "formulas", "kernels")
EngineFactory: TypeAlias = Callable[[Layout], Engine | None]


@dataclass(frozen=True, slots=True)
class Source:
    """Creates engines. `note` is why `auto` falls back to formulas; empty if it does not."""

    name: str
    engine: EngineFactory
    note: str = ""


def kernel_source(
    shape: Shape, gpu: Gpu, config: Fields | None, backend: str, database: Database | None = None
) -> Source:
    """The source of engines of one model, by its `config.json`, on one type of GPU.

    The database does not cover several nodes, so there is no engine for them. It refuses a layout without
    a table.

    Raises:
        Refusal: the database is not installed or lacks the GPU, or the model has no `config.json`.
    """
    if gpu.name not in SYSTEMS:
        names = ", ".join(SYSTEMS)
        raise Refusal(f"engine kernels has no measurements of {gpu.name}; expected one of {names}")
    if not config or "architectures" not in config:
        raise Refusal(
            "engine kernels needs a model of the catalogue, or its config.json with `architectures`"
        )
    text, tables = json.dumps(dict(config)), database or _installed()

    def engine(layout: Layout) -> Engine | None:
        if layout.nodes > 1 or layout.pipeline > 1:
            return None
        sizes: dict[str, int | str] = {"tp_size": layout.tensor, **_CACHE}
        if shape.routed:
            spread = layout.data > 1
            sizes["attention_dp_size"] = layout.data
            sizes["moe_tp_size"] = 1 if spread else layout.tensor
            sizes["moe_ep_size"] = layout.gpus if spread else 1
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(text, encoding="utf-8")
            try:
                spec = tables.compile_engine(folder, SYSTEMS[gpu.name], backend, **sizes)
                kernels = tables.EngineHandle(spec)
                kernels.predict_prefill_latency(1, _SHORT_PROMPT)
                kernels.decode_step_latency(1, _SHORT_PROMPT, 2)
            except _ERRORS as error:
                raise Refusal(
                    f"engine kernels has no measurements for this model on {layout.gpus} x {gpu.name} with "
                    f"{backend}; {one_line(str(error)):.200}"
                ) from None
        return KernelEngine(shape, gpu, layout, kernels=kernels)

    return Source("kernels", engine)


def _installed() -> Database:
    # The database warns about tables that we do not use.
    logging.getLogger(_LOGGER).setLevel(logging.ERROR)
    try:
        module = importlib.import_module(_MODULE)
    except ModuleNotFoundError:
        raise Refusal(
            f"engine kernels is not installed; run `{INSTALL}` in a clone, or choose the engine formulas"
        ) from None
    return cast("Database", module)  # `make kernels` checks its interface


def source_of(
    name: EngineName,
    shape: Shape,
    gpu: Gpu,
    config: Fields | None,
    backend: str,
    *,
    database: Database | None = None,
) -> Source:
    """The source of that name. `auto` is kernels if they cover the model and the GPU, else formulas.

    Raises:
        Refusal: the name is `kernels`, and they do not cover it.
    """

    def formulas(layout: Layout) -> Engine:
        return FormulaEngine(shape, gpu, layout)

    if name == "formulas":
        return Source("formulas", formulas)
    try:
        return kernel_source(shape, gpu, config, backend, database)
    except Refusal as error:
        if name == "kernels":
            raise
        return Source("formulas", formulas, short(error))


def short(error: Refusal) -> str:
    """Why `auto` does not take the kernels, without what the engine `kernels` would need."""
    return str(error).partition(";")[0]
