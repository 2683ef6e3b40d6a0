"""Where the times of engines come from: formulas, measured kernels, or the better of what there is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dynamo_profiler.engine import Engine
from dynamo_profiler.gpus import Gpu
from dynamo_profiler.kernels import Database, kernel_source
from dynamo_profiler.layouts import Layout
from dynamo_profiler.refusal import Refusal
from dynamo_profiler.shape import Shape
from dynamo_profiler.timing import FormulaEngine
from kube_runtime.kind import Fields

EngineName: TypeAlias = Literal["auto", "formulas", "kernels"]
ENGINES: tuple[EngineName, ...] = ("auto", "formulas", "kernels")
Make: TypeAlias = Callable[[Layout], Engine | None]


@dataclass(frozen=True, slots=True)
class Source:
    """Makes engines. `note` is why `auto` takes formulas; empty means: it does not."""

    name: str
    make: Make
    note: str = ""


def source_of(
    name: EngineName,
    shape: Shape,
    gpu: Gpu,
    config: Fields | None,
    backend: str,
    *,
    database: Database | None = None,
) -> Source:
    """The source of that name. `auto` means: kernels if they cover the model and the GPU, else formulas.

    Raises:
        Refusal: kernels are asked for, and do not cover it.
    """

    def formulas(layout: Layout) -> Engine:
        return FormulaEngine(shape, gpu, layout)

    if name == "formulas":
        return Source("formulas", formulas)
    try:
        kernels = kernel_source(shape, gpu, config, backend, database)
    except Refusal as error:
        if name == "kernels":
            raise
        return Source("formulas", formulas, str(error))
    return Source("kernels", kernels.engine)
