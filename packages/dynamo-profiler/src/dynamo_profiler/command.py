"""`dynamoctl profiler`: read the input of a profiling Job, and write its results.

The files must be complete before the process ends, and a failure must be where the request reads it: in the
log, the termination message and the status file.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import yaml

from dynamo_graphs.api.profiling import MOCKED_RESULTS_FILE, RESULTS_FILE, STATUS_FILE
from dynamo_graphs.files.yaml_reader import ShallowLoader, documents
from dynamo_graphs.files.yaml_writer import write_yaml
from dynamo_graphs.product import user_agent
from dynamo_profiler.choice import Choice
from dynamo_profiler.configuration import Configuration, Online, read_configuration, with_hardware
from dynamo_profiler.gpus import NodeGpus, best_nodes
from dynamo_profiler.measurement import Load
from dynamo_profiler.online import Identity, measured_choice
from dynamo_profiler.progress import Phase, Progress, followed
from dynamo_profiler.refusal import REFUSAL_CHARACTERS, Refusal
from dynamo_profiler.run import Inputs, Results, SearchSpace, best, results, search
from kube_runtime.client.connect import connect
from kube_runtime.client.requests import Client
from kube_runtime.commandline.errors import one_line
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.kind import Fields, Object
from kube_runtime.text import fitted
from kube_runtime.types.core import Node

TERMINATION_LOG = Path("/dev/termination-log")
"""The file from which the kubelet reads a container's termination message; the kubelet creates it."""

_SOURCE = "--profile-config"


def run(
    text: str,
    *,
    discovers: bool = False,
    environ: Mapping[str, str] = os.environ,
    termination_log: Path = TERMINATION_LOG,
) -> Results:
    """Profile by predictions, or by measuring if asked to; write the files and return what is in them.

    Raises:
        OperatorError: there is no result; it has been said in all places already.
    """
    diary = _Diary(termination_log)
    try:
        configuration = read_configuration(_configuration(text), discovers=discovers)
        folder = diary.folder = Path(configuration.output_folder)
        _clear(folder)
        if configuration.discovers:
            configuration = _with_nodes(configuration)
        inputs = _inputs(configuration, environ.get("DGDR_NAME", ""))
        pause_seconds = configuration.seconds_per_phase

        def note(step: Progress) -> None:
            diary.note(step)
            time.sleep(pause_seconds)

        space = followed(search(configuration, inputs), note)
        measured = ""
        if configuration.online is None:
            choice = best(space)
        else:
            request = Identity.of(environ)
            choice, load = asyncio.run(_measured(space, configuration.online, request, diary))
            measured = f"; measured: {load.text()}"
        made = followed(results(space, choice), note)
        # Last the file that others wait for.
        for name in sorted(made.files, key=lambda name: name == RESULTS_FILE):
            _write(folder / name, made.files[name])
        diary.note(Progress(Phase.DONE, made.choice.text() + measured), "success")
    except OperatorError as error:
        diary.close(one_line(str(error)))
        raise
    return made


@dataclass(slots=True)
class _Diary:
    """Reports progress in the log and in the status file. `folder` is None until known."""

    termination_log: Path
    folder: Path | None = None
    phase: Phase = Phase.INITIALIZING

    def note(self, step: Progress, status: str = "running") -> None:
        """Say what is being done."""
        self.phase = step.phase
        print(f"{step.phase.value}: {step.message}", flush=True)
        self._write(status, step.message)

    def close(self, cause: str) -> None:
        """Write why there is no result; the caller that ends the process logs it."""
        if self.termination_log.is_file():
            self.termination_log.write_text(cause, encoding="utf-8")
        if self.folder is not None and os.access(self.folder, os.W_OK):
            self._write("failed", cause)

    def _write(self, status: str, message: str) -> None:
        if self.folder is not None:
            step = {"status": status, "phase": self.phase.value, "message": message}
            _write(self.folder / STATUS_FILE, [step])


async def _measured(
    space: SearchSpace, online: Online, request: Identity, diary: _Diary
) -> tuple[Choice, Load]:
    """The choice that meets the targets, and what was measured of it under the whole load.

    SIGTERM, which a pod gets before it is removed, deletes the graph that is being measured.
    """
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        async with await connect(user_agent=user_agent()) as transport:
            client = Client(transport, field_manager="dynamo-profiler")
            choice, measured = await measured_choice(space, online, request, client, diary.note)
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None
    return choice, measured.loads[-1]


def _inputs(configuration: Configuration, name: str) -> Inputs:
    base = None
    if configuration.base_file:
        text = _text(Path(configuration.base_file))
        base = _documents(configuration.base_file, text)
    return Inputs(base, _model_config(configuration.model_folder), name)


def _model_config(folder: str) -> Fields | None:
    """The model's `config.json`. None means: there is none, and its name must do."""
    file = Path(folder) / "config.json"
    if not folder or not file.is_file():
        return None
    try:
        fields = json.loads(_text(file))
    except ValueError as error:
        raise ConfigError(str(file), f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ConfigError(str(file), "not a JSON object")
    return fields


def _with_nodes(configuration: Configuration) -> Configuration:
    """The configuration with the best GPUs of the cluster."""
    gpu, per_node = best_nodes(asyncio.run(_nodes()))
    return with_hardware(configuration, gpu, per_node)


async def _nodes() -> list[NodeGpus]:
    async with await connect(user_agent=user_agent()) as transport:
        pages = Client(transport).pages(Node)
        return [
            NodeGpus(node.metadata.labels, node.status.allocatable)
            async for page in pages
            for node in page.items
        ]


def _configuration(text: str) -> object:
    """The document, read as Dynamo's profiler reads it and as the operator writes it: by PyYAML's rules."""
    try:
        return yaml.load(text, Loader=ShallowLoader)  # noqa: S506  a safe loader
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # PyYAML lets through what building a value raises, such as that of `!!bool maybe`.
        raise ConfigError(_SOURCE, f"unreadable YAML: {one_line(str(error))}") from None


def _documents(source: str, text: str) -> list[object]:
    try:
        return [document.value for document in documents(source, text)]
    except ExceptionGroup as group:
        mistakes, bugs = group.split(ConfigError)
        if mistakes is None or bugs is not None:
            raise
        texts = [str(mistake) for mistake in mistakes.exceptions]
        raise Refusal(fitted(texts, REFUSAL_CHARACTERS)) from None


def _clear(folder: Path) -> None:
    """Remove what an earlier run has left on a volume that is kept: it would pass for ours."""
    try:
        for name in (RESULTS_FILE, MOCKED_RESULTS_FILE, STATUS_FILE):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(str(folder), str(error.strerror)) from None


def _write(file: Path, objects: Iterable[Object]) -> None:
    """Write it beside and put it in place whole, as others read while we write."""
    stream = StringIO()
    write_yaml(objects, stream)
    unfinished = file.with_name(f".{file.name}")
    try:
        unfinished.write_text(stream.getvalue(), encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        raise ConfigError(str(file), str(error.strerror)) from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(str(file), str(error.strerror)) from None
    except UnicodeDecodeError:
        raise ConfigError(str(file), "not UTF-8") from None
