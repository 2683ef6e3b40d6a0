"""The source of engines: formulas, measured kernels, or kernels where they cover the model and the GPU."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dynamo_profiler.engine import Engine, FormulaEngine, Layout
from dynamo_profiler.kernels import Database, kernel_source
from dynamo_profiler.refusal import Refusal
from dynamo_profiler.shape import Gpu, Shape
from kube_runtime.kind import Fields

EngineName: TypeAlias = Literal["auto", "formulas", "kernels"]
ENGINES: tuple[EngineName, ...] = ("auto", "formulas", "kernels")
EngineFactory: TypeAlias = Callable[[Layout], Engine | None]


@dataclass(frozen=True, slots=True)
class Source:
    """Creates engines. `note` is why `auto` falls back to formulas; empty if it does not."""

    name: str
    engine: EngineFactory
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
    """The source of that name. `auto` is kernels if they cover the model and the GPU, else formulas.

    Raises:
        Refusal: the name is `kernels`, and they do not cover it.
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
