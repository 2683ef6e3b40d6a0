"""`dynamoctl profiler`: read the input of a profiling Job and write its results.

The files must be complete before the process ends. A failure goes where the operator reads it: the log, the
termination message and the status file.
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

from dynamo_graphs.output import write_yaml
from dynamo_graphs.reader import Reading
from dynamo_operator import user_agent
from dynamo_operator.documents import ShallowLoader, documents
from dynamo_operator.requests.api import FINAL_FILE, MOCKED_RESULTS_FILE, RESULTS_FILE, STATUS_FILE
from dynamo_profiler import REFUSAL_CHARACTERS, Refusal
from dynamo_profiler.choice import Answer, Choice
from dynamo_profiler.client import Load
from dynamo_profiler.configuration import Online, read_configuration, with_hardware
from dynamo_profiler.online import Identity, measured_choice
from dynamo_profiler.request import configuration_of, is_mocked
from dynamo_profiler.run import Inputs, Phase, Progress, Results, SearchSpace, best, results, search
from dynamo_profiler.shape import NodeGpus, best_nodes
from dynamo_profiler.spelling import as_request
from kube_runtime.client.client import Client
from kube_runtime.client.connect import connect
from kube_runtime.commandline import one_line
from kube_runtime.errors import ConfigError, ConfigErrors, OperatorError
from kube_runtime.types.kinds import Node
from kube_runtime.types.meta import Fields, Object, fitted

TERMINATION_LOG = Path("/dev/termination-log")
"""The kubelet creates this file, and reads the container's termination message from it."""


def run(
    text: str,
    *,
    discovers: bool = False,
    request_folder: str = "",
    environ: Mapping[str, str] = os.environ,
    termination_log: Path = TERMINATION_LOG,
) -> Results:
    """Profile by predictions, or by measuring if configured; write the files and return the results.

    `text` is a configuration, or the spec of a request in v1beta1, whose results go to `request_folder`.

    Raises:
        OperatorError: there is no result; the failure is reported already.
    """
    reporter = _Reporter(termination_log, Path(request_folder) if request_folder else None)
    try:
        document = _document(text, "--config" if request_folder else "--profile-config")
        final = ""
        if request_folder:
            final = MOCKED_RESULTS_FILE if is_mocked(document) else RESULTS_FILE
            document = configuration_of(document, environ.get("DGDR_NAMESPACE") or "default")
            document["outputDir"] = request_folder
        configuration = read_configuration(document, discovers=discovers)
        folder = reporter.folder = Path(configuration.output_folder)
        _clear(folder)
        if configuration.discovers:
            gpu, per_node = best_nodes(asyncio.run(_nodes()))
            configuration = with_hardware(configuration, gpu, per_node)
        file = configuration.base_file
        base = _documents(file, _text(Path(file))) if file else None
        inputs = Inputs(base, _model_config(configuration.model_folder), environ.get("DGDR_NAME", ""))
        pause_seconds = configuration.seconds_per_phase

        def report(step: Progress) -> None:
            reporter.report(step)
            time.sleep(pause_seconds)

        space = search(configuration, inputs, report)
        if configuration.online is None:
            answer = best(space)
            outcome = answer.text()
        else:
            request = Identity.of(environ)
            choice, load = asyncio.run(_measured(space, configuration.online, request, reporter))
            answer = Answer(choice)
            outcome = f"{choice.text()}; measured: {load.text()}"
        made = results(space, answer, report)
        # The file that others wait for comes last.
        for name in sorted(made.files, key=lambda name: name == RESULTS_FILE):
            _write(folder / name, made.files[name])
        if final:
            _write(folder / FINAL_FILE, made.files[final])
        reporter.report(Progress(Phase.DONE, outcome), "success")
    except OperatorError as error:
        text = one_line(str(error))
        reporter.report_failure(as_request(text) if request_folder else text)
        raise
    return made


@dataclass(slots=True)
class _Reporter:
    """Reports progress in the log and in the status file, whose folder is None until known."""

    termination_log: Path
    folder: Path | None = None
    phase: Phase = Phase.INITIALIZING

    def report(self, step: Progress, status: str = "running") -> None:
        """Report a step."""
        self.phase = step.phase
        print(f"{step.phase.value}: {step.message}", flush=True)
        self._write(status, step.message)

    def report_failure(self, cause: str) -> None:
        """Write the termination message and the failed status; the caller logs the failure."""
        if self.termination_log.is_file():
            self.termination_log.write_text(cause, encoding="utf-8")
        if self.folder is not None and os.access(self.folder, os.W_OK):
            self._write("failed", cause)

    def _write(self, status: str, message: str) -> None:
        if self.folder is not None:
            step = {"status": status, "phase": self.phase.value, "message": message}
            _write(self.folder / STATUS_FILE, [step])


async def _measured(
    space: SearchSpace, online: Online, request: Identity, reporter: _Reporter
) -> tuple[Choice, Load]:
    # SIGTERM, with which the kubelet ends a pod, deletes the graph that is being measured.
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        async with await connect(user_agent=user_agent()) as transport:
            client = Client(transport, field_manager="dynamo-profiler")
            reading = Reading(transport)
            await reading.learn_versions()
            client.translations = reading.client.translations
            choice, measured = await measured_choice(space, online, request, client, reporter.report)
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None
    return choice, measured.loads[-1]


def _model_config(folder: str) -> Fields | None:
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


async def _nodes() -> list[NodeGpus]:
    async with await connect(user_agent=user_agent()) as transport:
        pages = Client(transport).pages(Node)
        return [
            NodeGpus(node.metadata.labels, node.status.allocatable)
            async for page in pages
            for node in page.items
        ]


def _document(text: str, source: str) -> object:
    try:  # PyYAML's types are those of Dynamo's profiler
        return yaml.load(text, Loader=ShallowLoader)  # noqa: S506  a safe loader
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # PyYAML does not wrap the errors of building a value, such as `!!bool maybe`.
        raise ConfigError(source, f"unreadable YAML: {one_line(str(error))}") from None


def _documents(source: str, text: str) -> list[object]:
    try:
        return [document.value for document in documents(source, text)]
    except ConfigErrors as group:
        raise Refusal(fitted([*map(str, group.exceptions)], REFUSAL_CHARACTERS)) from None


def _clear(folder: Path) -> None:
    # Results that an earlier run left on a persistent volume would look like ours.
    try:
        for name in (RESULTS_FILE, MOCKED_RESULTS_FILE, FINAL_FILE, STATUS_FILE):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(str(folder), str(error.strerror)) from None


def _write(file: Path, objects: Iterable[Object]) -> None:
    stream = StringIO()
    write_yaml(objects, stream)
    # Others read the file meanwhile, so it is replaced as a whole.
    partial = file.with_name(f".{file.name}")
    try:
        partial.write_text(stream.getvalue(), encoding="utf-8")
        partial.replace(file)
    except OSError as error:
        raise ConfigError(str(file), str(error.strerror)) from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(str(file), str(error.strerror)) from None
    except UnicodeDecodeError:
        raise ConfigError(str(file), "not UTF-8") from None
