"""Asking the profiler: a configuration, the run of it, and what came out."""

from collections.abc import Sequence
from typing import Any

from dynamo_graphs.api.profiling import MOCKED_RESULTS_FILE, RESULTS_FILE
from dynamo_profiler.configuration import Configuration, read_configuration
from dynamo_profiler.progress import Progress, run_steps
from dynamo_profiler.run import Inputs, Results, profile
from kube_runtime.kind import Object

LOOSE = {"isl": 2000, "osl": 200, "ttft": 2000, "itl": 100}


def a_configuration(
    model: str = "Qwen/Qwen3-8B", backend: str = "vllm", **sections: Any
) -> Configuration:
    """A configuration with targets that are easy to meet, unless others are given."""
    document: dict[str, Any] = {
        "deployment": {"model": model, "namespace": "default"},
        "engine": {"backend": backend},
        "sla": LOOSE,
        "output_dir": "/data",
    }
    for name, section in sections.items():
        known = document.get(name)
        is_merged = name != "sla" and isinstance(known, dict) and isinstance(section, dict)
        document[name] = {**known, **section} if is_merged and known else section
    return read_configuration(document)


def steps_and_results(
    configuration: Configuration, inputs: Inputs | None = None
) -> tuple[list[Progress], Results]:
    """All that a run says, and what it returns."""
    steps: list[Progress] = []
    results = run_steps(profile(configuration, inputs or Inputs()), steps.append)
    return steps, results


def results_of(configuration: Configuration, inputs: Inputs | None = None) -> Results:
    """What a run returns."""
    return steps_and_results(configuration, inputs)[1]


def graph_of(results: Results, *, is_mocked: bool = False) -> Object:
    """The one graph in the file."""
    documents: Sequence[Object] = results.files[MOCKED_RESULTS_FILE if is_mocked else RESULTS_FILE]
    (found,) = (each for each in documents if each["kind"] == "DynamoGraphDeployment")
    return found


def workers_of(graph: Object) -> dict[str, Object]:
    """The workers by name."""
    services: dict[str, Object] = graph["spec"]["services"]
    return {key: each for key, each in services.items() if each["componentType"] == "worker"}
