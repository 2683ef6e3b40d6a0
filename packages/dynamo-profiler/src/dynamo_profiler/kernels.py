"""Engines whose times come from measured kernels: the database of NVIDIA's AI Configurator.

It is optional (`dynamo-profiler[aiconfigurator]`, 500 MB), and imported when the first engine is made. Of its
packages only the core is needed, which has the tables and adds up the kernels of a step; the search around it
is the same as with formulas (docs/decisions/0054-measured-kernels.md).
"""

import importlib
import json
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, cast

from dynamo_profiler.engine import Accuracy, Engine
from dynamo_profiler.gpus import Gpu
from dynamo_profiler.layouts import Layout
from dynamo_profiler.refusal import Refusal
from dynamo_profiler.shape import Shape
from kube_runtime.commandline.errors import one_line
from kube_runtime.kind import Fields

EXTRA = "dynamo-profiler[aiconfigurator]"
SYSTEMS: Mapping[str, str] = {
    "gb200_sxm": "gb200",
    "b200_sxm": "b200_sxm",
    "h200_sxm": "h200_sxm",
    "h100_sxm": "h100_sxm",
    "a100_sxm": "a100_sxm",
    "l40s": "l40s",
}
"""The GPUs that the database has measurements of, by our names. Source: the folders of its release 0.12.0."""
PREFILL_CORRECTION = 1.24
DECODE_CORRECTION = 1.1
"""Measured times as a multiple of the sums of kernels. Source: medians of the tables that
docs/profiler-accuracy.md names as those of the fit."""
_MODULE = "aiconfigurator_core.sdk.engine"
_LOGGER = "aiconfigurator_core"
_SHORT_PROMPT = 128
_CACHE: Mapping[str, str] = {"kvcache_quant_mode": "bfloat16", "fmha_quant_mode": "bfloat16"}
"""The cache is stored as `shape` counts it, whatever the weights are."""
_ERRORS = (ValueError, LookupError, RuntimeError, TypeError, AttributeError, OSError)
"""What the database raises where it lacks a table; it has no error of its own for that."""


class Kernels(Protocol):
    """What is used of the database's engine. Units: milliseconds."""

    def predict_prefill_latency(self, bs: int, isl: int) -> float:
        """One pass over so many prompts of that length."""
        ...

    def decode_step_latency(self, gen_tokens: int, isl: int, osl: int) -> float:
        """One token for each of so many answers behind prompts of that length."""
        ...


class Database(Protocol):
    """What is used of the module that makes engines."""

    def compile_engine(
        self, model_path: str, system: str, backend: str, **layout: int | str
    ) -> bytes:
        """The kernels of a model that is cut in this way."""
        ...

    def EngineHandle(self, spec_bytes: bytes) -> Kernels:  # noqa: N802  the module's name
        """The engine of these kernels."""
        ...


@dataclass(frozen=True, slots=True)
class KernelEngine(Engine):
    """An engine whose steps are sums of measured kernels. It stays on one node."""

    source: ClassVar[str] = "kernels"
    accuracy: ClassVar[Accuracy] = Accuracy(ttft=0.25, itl=0.25)
    """Median errors for models and GPUs that nothing is fitted to: docs/profiler-accuracy.md."""
    margin: ClassVar[Accuracy] = Accuracy(ttft=0.75, itl=0.25)
    """What 84 % of the times to the first token need there, and all of those between tokens."""

    kernels: Kernels = field(kw_only=True, repr=False)

    def prefill_seconds(self, tokens: float) -> float:
        """The time from one prompt's start to its end, in an engine that does nothing else."""
        milliseconds = self.kernels.predict_prefill_latency(1, max(1, round(tokens)))
        return PREFILL_CORRECTION * milliseconds / 1000

    def step_seconds(self, answers: float, context: float) -> float:
        """The time in which each of so many answers gets its next token."""
        own = max(1, round(answers / self.cut.data))
        milliseconds = self.kernels.decode_step_latency(own, max(1, round(context)), 2)
        return DECODE_CORRECTION * milliseconds / 1000


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Makes engines of one model on one type of GPU. `config` is the model's `config.json`."""

    shape: Shape
    gpu: Gpu
    config: Fields
    backend: str
    database: Database

    def engine(self, layout: Layout) -> Engine | None:
        """The engine that is cut in this way. None means: over several nodes, which is not covered.

        Raises:
            Refusal: the database lacks a table for it.
        """
        if layout.nodes > 1 or layout.pipeline > 1:
            return None
        sizes: dict[str, int | str] = {"tp_size": layout.tensor, **_CACHE}
        if self.shape.routed:
            spread = layout.data > 1
            sizes["attention_dp_size"] = layout.data
            sizes["moe_tp_size"] = 1 if spread else layout.tensor
            sizes["moe_ep_size"] = layout.tensor * layout.data if spread else 1
        system = SYSTEMS[self.gpu.name]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "config.json"
            file.write_text(json.dumps(dict(self.config)), encoding="utf-8")
            try:
                spec = self.database.compile_engine(folder, system, self.backend, **sizes)
                kernels = self.database.EngineHandle(spec)
                kernels.predict_prefill_latency(1, _SHORT_PROMPT)
                kernels.decode_step_latency(1, _SHORT_PROMPT, 2)
            except _ERRORS as error:
                raise Refusal(
                    f"engine kernels: no measurements for this model on {layout.tensor * layout.data} x "
                    f"{self.gpu.name} with {self.backend}: {one_line(str(error)):.200}"
                ) from None
        return KernelEngine(self.shape, self.gpu, layout, kernels=kernels)


def kernel_source(
    shape: Shape, gpu: Gpu, config: Fields | None, backend: str, database: Database | None = None
) -> KernelSource:
    """The source of engines for a model.

    Raises:
        Refusal: the database is not installed, or has no such GPU, or the model has no `config.json`.
    """
    if gpu.name not in SYSTEMS:
        raise Refusal(
            f"engine kernels: no measurements of {gpu.name} (expected one of {', '.join(SYSTEMS)})"
        )
    if not config or "architectures" not in config:
        raise Refusal(
            "engine kernels needs a model of the catalogue, or its config.json with `architectures`"
        )
    return KernelSource(shape, gpu, config, backend, database or _installed())


def _installed() -> Database:
    logging.getLogger(_LOGGER).setLevel(
        logging.ERROR
    )  # it warns of tables that are never asked for
    try:
        module = importlib.import_module(_MODULE)
    except ModuleNotFoundError:
        raise Refusal(
            f"engine kernels is not installed (install {EXTRA}, for example with pip, or choose the engine "
            "formulas)"
        ) from None
    return cast("Database", module)  # its interface is checked by `make kernels`
