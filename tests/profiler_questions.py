"""Run the profiler in tests: a configuration, its steps and results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from dynamo_operator.requests.api import MOCKED_RESULTS_FILE, RESULTS_FILE, STATUS_FILE
from dynamo_profiler.configuration import Configuration, read_configuration
from dynamo_profiler.run import Inputs, Progress, Results, profile
from kube_runtime.types.meta import Object

LOOSE = {"isl": 2000, "osl": 200, "ttft": 2000, "itl": 100}


def a_configuration(model: str = "Qwen/Qwen3-8B", backend: str = "vllm", **sections: Any) -> Configuration:
    """A configuration with targets that are easy to meet; `sections` override its parts."""
    document: dict[str, Any] = {
        "deployment": {"model": model, "namespace": "default"},
        "engine": {"backend": backend},
        "sla": LOOSE,
        "output_dir": "/data",
    }
    for name, section in sections.items():
        default = document.get(name)
        is_merged = name != "sla" and isinstance(default, dict) and isinstance(section, dict)
        document[name] = {**default, **section} if is_merged and default else section
    return read_configuration(document)


def steps_and_results(
    configuration: Configuration, inputs: Inputs | None = None
) -> tuple[list[Progress], Results]:
    steps: list[Progress] = []
    results = profile(configuration, inputs or Inputs(), steps.append)
    return steps, results


def results_of(configuration: Configuration, inputs: Inputs | None = None) -> Results:
    return steps_and_results(configuration, inputs)[1]


def graph_of(results: Results, *, is_mocked: bool = False) -> Object:
    """The graph in the results file, or in that with simulated engines."""
    documents: Sequence[Object] = results.files[MOCKED_RESULTS_FILE if is_mocked else RESULTS_FILE]
    (graph,) = (body for body in documents if body["kind"] == "DynamoGraphDeployment")
    return graph


def workers_of(graph: Object) -> dict[str, Object]:
    services: dict[str, Object] = graph["spec"]["services"]
    return {key: service for key, service in services.items() if service["componentType"] == "worker"}


def text(folder: Path, **sections: Any) -> str:
    """A configuration that writes into the folder."""
    document: dict[str, Any] = {
        "deployment": {"model": "a/8B"},
        "engine": {"backend": "vllm"},
        "sla": {"ttft": 2000, "itl": 100},
        "output_dir": str(folder),
    }
    return yaml.safe_dump({**document, **sections})


def status(folder: Path) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load((folder / STATUS_FILE).read_text(encoding="utf-8"))
    return found
