"""`dynamoctl profile` and `dynamoctl new`: a graph from a model, GPUs and targets, without a cluster."""

import csv
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dynamo_graphs.api.profiling import RESULTS_FILE
from dynamo_graphs.files.yaml_writer import write_yaml
from dynamo_profiler.catalog import model_named, variant_of
from dynamo_profiler.charts import COLUMNS, html, row, svg
from dynamo_profiler.configuration import Configuration, configuration
from dynamo_profiler.pareto import Candidate, front
from dynamo_profiler.run import Inputs, Results, profile
from dynamoctl.profile_options import Wanted
from dynamoctl.screen import show, show_json, table
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Fields, Object

_HEAD = (
    "MODE",
    "WORKERS",
    "GPUS",
    "AT ONCE",
    "TTFT ms",
    "ITL ms",
    "TOK/S/GPU",
    "TOK/S/USER",
    "TARGETS",
)


@dataclass(frozen=True, slots=True)
class Files:
    """Where pictures go; None means: nowhere."""

    plot: Path | None = None
    report: Path | None = None


def print_profile(wanted: Wanted, output: str, files: Files) -> None:
    """Print the recommended graph, or the candidates that it was chosen from.

    Raises: OperatorError: a value is invalid, or no graph meets the targets.
    """
    known = known_from(wanted)
    notes, results = _run(known, wanted)
    title = f"{known.model} on {known.hardware.gpu.name}"
    if files.plot:
        _write(files.plot, svg(title, results.considered))
    if files.report:
        _write(files.report, html(title, [*notes, results.choice.text()], results.considered))
    if output == "yaml":
        write_yaml(results.files[RESULTS_FILE], sys.stdout)
        return
    if output == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            [COLUMNS, *map(row, results.considered)]
        )
        return
    if output == "json":
        rows = [dict(zip(COLUMNS, row(each), strict=True)) for each in results.considered]
        show_json({"choice": results.choice.text(), "notes": notes, "candidates": rows})
        return
    shown = front(each for each in results.considered if each.meets) or front(results.considered)
    show(*notes, "", table(_HEAD, map(_cells, shown)), "", f"Choice: {results.choice.text()}")


def print_new(wanted: Wanted, name: str, replicas: int) -> None:
    """Print the manifest of a graph for a model: the smallest engine that meets the targets, so many times.

    Raises: OperatorError: a value is invalid, or the model does not fit.
    """
    _, results = _run(known_from(wanted), wanted, name)
    graph = results.files[RESULTS_FILE][0]
    for service in graph["spec"]["services"].values():
        if service["componentType"] == "worker" and replicas:
            service["replicas"] = replicas
    print(f"# {results.choice.text()}")
    write_yaml([graph], sys.stdout)


def known_from(wanted: Wanted) -> Configuration:
    """The profiler's configuration of these flags.

    Raises:
        Refusal: a value is invalid, or the model is not published in that precision.
    """
    model = model_named(wanted.model)
    name = variant_of(model, wanted.precision).name if model and wanted.precision else wanted.model
    analytic: Object = {
        "requestsPerSecond": wanted.requests_per_second,
        "engine": wanted.engine,
        "maxGpus": wanted.max_gpus,
        "maxNodesPerEngine": wanted.max_nodes,
    }
    if wanted.mode:
        analytic["mode"] = wanted.mode
    if wanted.margin is not None:
        analytic["margin"] = wanted.margin
    targets = {"isl": wanted.isl, "osl": wanted.osl, "ttft": wanted.ttft, "itl": wanted.itl}
    return configuration(
        {
            "deployment": {"model": name},
            "engine": {"backend": wanted.backend},
            "sla": targets,
            "hardware": {"gpuType": wanted.gpu, "numGpusPerNode": wanted.gpus_per_node},
            "analytic": analytic,
        }
    )


def _run(known: Configuration, wanted: Wanted, name: str = "") -> tuple[list[str], Results]:
    steps = profile(known, Inputs(None, _config(wanted.model_config), name))
    notes: list[str] = []
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            results: Results = end.value
            return notes[:1], results
        notes.append(step.message)
        print(f"{step.phase.value}: {step.message}", file=sys.stderr, flush=True)


def _config(file: Path | None) -> Fields | None:
    if file is None:
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(file), str(error.strerror)) from None
    except ValueError as error:
        raise ConfigError(str(file), f"not JSON: {error}") from None
    if not isinstance(found, Mapping):
        raise ConfigError(str(file), "not a JSON object")
    return found


def _cells(each: Candidate) -> list[str]:
    *values, meets = row(each)
    return [*map(str, values), "met" if meets else "missed"]


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(str(file), str(error.strerror)) from None
