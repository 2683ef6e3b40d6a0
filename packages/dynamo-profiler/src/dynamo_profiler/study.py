"""The profiler for Python programs: one call returns the graph and all candidates, as rows and as a chart."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal, TypedDict, Unpack

from dynamo_graphs import Graph, Latency, objects
from dynamo_graphs.versions import in_version
from dynamo_operator.requests.api import RESULTS_FILE
from dynamo_profiler import Refusal
from dynamo_profiler.candidates import COLUMNS, Candidate, cheapest_of_layouts, front, row
from dynamo_profiler.charts import html, svg
from dynamo_profiler.choice import Answer, Choice
from dynamo_profiler.configuration import Configuration, Targets, read_configuration
from dynamo_profiler.run import Inputs, Progress, profile
from dynamo_profiler.shape import model_named, variant_of
from dynamo_profiler.spelling import as_arguments
from kube_runtime.types.meta import Object


class Options(TypedDict, total=False):
    """Keyword arguments of `study`; `dynamoctl profile --help` shows the defaults."""

    name: str
    """Name of the graph."""

    model_config: Mapping[str, object] | None
    """The model's `config.json`, for a model that is not built in."""

    precision: Literal["bf16", "fp8", "fp4"] | None
    """Take the published variant of a built-in model with these weights."""

    backend: Literal["vllm", "sglang", "trtllm"]
    """Inference engine of the workers."""

    gpus_per_node: int
    """GPUs of one node."""

    max_gpus: int
    """Most GPUs of the graph; 0 means unlimited."""

    max_nodes: int
    """Most nodes of one engine."""

    requests_per_second: float
    """Load that determines the replicas."""

    mode: Literal["aggregated", "disaggregated"] | None
    """Whether prefill has separate workers; None takes the cheaper mode."""

    engine: Literal["auto", "formulas", "kernels"]
    """Source of the predicted times."""

    margin: float | None
    """Error of predictions to leave room for, as a share; None means the engine's median error."""


@dataclass(frozen=True, slots=True)
class Study:
    """The result of `study`: in Jupyter a chart of the candidates, `rows()` for a data frame."""

    title: str
    targets: Targets
    note: str
    lines: tuple[str, ...]
    """The answers: a graph with a margin, and the one if predictions are exact."""
    answer: Answer
    candidates: tuple[Candidate, ...]
    documents: tuple[Object, ...]
    """The graph and its ConfigMaps, as they are applied."""

    @property
    def graph(self) -> Graph:
        """The graph of the choice."""
        return Graph.from_dict(in_version(self.documents[-1], objects.DEFAULT_VERSION))

    @property
    def choice(self) -> Choice:
        """The choice, which leaves the margin if a graph does."""
        return self.answer.choice

    @property
    def front(self) -> tuple[Candidate, ...]:
        """The Pareto front of the candidates that meet the targets, or of all if none does."""
        return front(candidate for candidate in self.candidates if candidate.meets) or front(self.candidates)

    @property
    def cheapest(self) -> tuple[Candidate, ...]:
        """The choices, and of every other layout that meets the targets the cheapest graph."""
        return cheapest_of_layouts(self.candidates)

    def rows(self) -> list[dict[str, str | int | float | bool]]:
        """All candidates, for `pandas.DataFrame`. Units are in the names of the columns."""
        return [dict(zip(COLUMNS, row(candidate), strict=True)) for candidate in self.candidates]

    def svg(self) -> str:
        """The chart: tokens per second and GPU, against tokens per second and user and the first token."""
        return svg(self.title, self.candidates, self.targets)

    def html(self) -> str:
        """A self-contained page with the charts and all candidates."""
        return html(self.title, [self.note, *self.lines], self.candidates, self.targets)

    def __repr__(self) -> str:
        return f"<Study {self.title}: {self.choice.gpus} GPUs, {len(self.candidates)} candidates>"

    def _repr_html_(self) -> str:
        texts = "".join(f"<p>{escape(text)}</p>" for text in (self.note, *self.lines))
        return f"{texts}{self.svg()}"


def study(
    model: str,
    *,
    gpu: str,
    latency: Latency,
    seen: Callable[[Progress], object] | None = None,
    spell: Callable[[str], str] = as_arguments,
    **options: Unpack[Options],
) -> Study:
    """Find the cheapest graph for a model on Hugging Face that meets the targets on these GPUs.

    `seen` is called with each of about six steps; `spell` puts the names of values into messages, by default
    those of these arguments. `options` are the flags of `dynamoctl profile`: `name` (of the graph),
    `model_config` (the content of the model's `config.json`), `precision`, `backend`, `gpus_per_node`,
    `max_gpus`, `max_nodes`, `requests_per_second`, `mode`, `engine`, `margin`.

    Raises: kube_runtime.errors.OperatorError: a value is invalid, or no graph meets the targets; the
    message says what would be possible.
    """
    inputs = Inputs(None, options.get("model_config"), options.get("name", ""))
    notes: list[str] = []

    def note(step: Progress) -> None:
        notes.append(step.message)
        if seen is not None:
            seen(step)

    try:
        configuration = _configuration(model, gpu, latency, options)
        results = profile(configuration, inputs, note)
    except Refusal as error:
        raise Refusal(spell(str(error))) from None
    title = f"{configuration.model} on {configuration.hardware.gpu.name}"
    documents = tuple(results.files[RESULTS_FILE])
    lines = tuple(map(spell, results.answer.lines))
    return Study(title, configuration.targets, notes[0], lines, results.answer, results.considered, documents)


def _configuration(model: str, gpu: str, latency: Latency, options: Options) -> Configuration:
    # Options that are None or omitted have the profiler's defaults.
    listed, precision = model_named(model), options.get("precision")
    analytic: Object = {
        "requestsPerSecond": options.get("requests_per_second"),
        "engine": options.get("engine"),
        "maxGpus": options.get("max_gpus"),
        "maxNodesPerEngine": options.get("max_nodes"),
        "mode": options.get("mode"),
        "margin": options.get("margin"),
    }
    return read_configuration(
        {
            "deployment": {"model": variant_of(listed, precision).name if listed and precision else model},
            "engine": {"backend": options.get("backend", "vllm")},
            "sla": {
                "isl": latency.input_tokens,
                "osl": latency.output_tokens,
                "ttft": latency.first_token_ms,
                "itl": latency.next_token_ms,
            },
            "hardware": {"gpuType": gpu, "numGpusPerNode": options.get("gpus_per_node")},
            "analytic": analytic,
        }
    )
