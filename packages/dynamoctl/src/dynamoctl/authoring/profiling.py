"""`dynamoctl profile` and `dynamoctl new`: find a graph for a model, GPUs and targets, without a cluster."""

import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from cyclopts import CycloptsError

from dynamo_graphs import Graph, Latency
from dynamo_graphs.output import write_yaml
from dynamo_graphs.reader import NAME_IN_WORDS
from dynamo_graphs.versions import VERSIONS, Version
from dynamo_operator.component.api import GROUP
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.problems import is_subdomain
from dynamo_profiler.candidates import COLUMNS, row
from dynamo_profiler.spelling import as_flags
from dynamo_profiler.study import Study, study
from dynamoctl.options import ProfileOptions
from dynamoctl.screen import show, show_json, table
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Fields, Object

_HEAD = (
    *("CHOICE", "MODE", "WORKERS", "GPUS", "REQ/S", "AT ONCE"),
    *("TTFT ms", "ITL ms", "TOK/S/GPU", "TOK/S/USER"),
)
_SAME = (
    *("gpu", "precision", "backend", "gpus_per_node", "max_gpus", "max_nodes"),
    *("requests_per_second", "mode", "engine", "margin"),
)
"""The options with the name that `study` has for them."""


def print_profile(
    options: ProfileOptions, output: str, api_version: str, *, plot: Path | None, report: Path | None
) -> None:
    """Print the recommended graph in a version, or the candidates that it was chosen from; write the files.

    Raises: OperatorError: a value is invalid, or no graph meets the targets.
    """
    result = _study(options)
    for file, text_of in ((plot, result.svg), (report, result.html)):
        if file is not None:
            try:
                file.write_text(text_of(), encoding="utf-8")
            except OSError as error:
                raise ConfigError(str(file), str(error.strerror)) from None
    if output == "yaml":
        write_yaml([_in_version(document, api_version) for document in result.documents], sys.stdout)
    elif output == "csv":
        lines = [COLUMNS, *map(row, result.candidates)]
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
    elif output == "json":
        texts = {"choice": result.choice.text(), "answer": result.lines, "notes": [result.note]}
        show_json({**texts, "candidates": result.rows()})
    else:
        rows = [[*map(str, row(candidate))][: len(_HEAD)] for candidate in result.cheapest]
        show(result.note, "", table(_HEAD, rows), "", *map(_sentence, result.lines))


def print_new(options: ProfileOptions, name: str, replicas: int, api_version: str) -> None:
    """Print the manifest of a graph for a model: the smallest engine that meets the targets, replicated.

    Raises: CycloptsError: the name is invalid; OperatorError: a value is, or the model does not fit.
    """
    if not is_subdomain(name):
        raise CycloptsError(f'invalid name "{name}" (expected {NAME_IN_WORDS}, for example chat)')
    result = _study(options, name)
    graph = result.documents[0]
    for service in graph["spec"]["services"].values():
        if service["componentType"] == "worker" and replicas:
            service["replicas"] = replicas
    for line in (result.note, *result.lines):
        print(f"# {line}")
    write_yaml([_in_version(graph, api_version)], sys.stdout)


def _in_version(document: Object, api_version: str) -> Object:
    is_graph = document["kind"] == DynamoGraphDeployment.KIND.name
    return Graph.from_dict(document).to_dict(_VERSIONS[api_version]) if is_graph else document


_VERSIONS: Mapping[str, Version] = {f"{GROUP}/{version}": version for version in VERSIONS}


def _sentence(line: str) -> str:
    return line[:1].upper() + line[1:]


def _study(options: ProfileOptions, name: str = "") -> Study:
    given = {field: getattr(options, field) for field in _SAME}
    return study(
        options.model,
        latency=Latency(
            first_token_ms=options.ttft,
            next_token_ms=options.itl,
            input_tokens=options.isl,
            output_tokens=options.osl,
        ),
        spell=as_flags,
        name=name,
        model_config=_config(options.model_config),
        **given,
    )


def _config(file: Path | None) -> Fields | None:
    if file is None:
        return None
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(file), str(error.strerror)) from None
    except ValueError as error:
        raise ConfigError(str(file), f"not JSON: {error}") from None
    if not isinstance(config, Mapping):
        raise ConfigError(str(file), "not a JSON object")
    return config
