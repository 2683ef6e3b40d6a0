"""Read objects from files, folders and standard input, each with its position."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynamo_graphs.api.component import GROUP
from dynamo_graphs.api.crd import RESOURCES
from dynamo_graphs.files.yaml_reader import Document, documents
from dynamo_graphs.validation.syntax import nearest
from dynamo_operator.cli.configuration import text_of
from kube_runtime.errors import ConfigError, leaves
from kube_runtime.kind import Object

STANDARD_INPUT = "-"
DEFAULT_NAMESPACE = "default"
"""The namespace of objects where neither they nor the command line name one."""
KINDS = frozenset(resource.KIND.name for resource in RESOURCES)
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and its position: a document, or an item of a List."""

    value: Object
    document: Document
    prefix: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether the object is of our kinds, is probably meant to be, or has no kind at all."""
        version, kind = self.value.get("apiVersion"), self.value.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str) or kind in KINDS:
            return True
        if version.partition("/")[0] != GROUP:
            return False  # of another project, even with a similar name
        return kind.startswith("Dynamo") or bool(nearest(kind, KINDS))

    @property
    def metadata(self) -> Object:
        """The metadata; {} unless it is a mapping."""
        metadata = self.value.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def source(self) -> str:
        """The file that contains it."""
        return self.document.source

    def problem(self, path: str, message: str) -> ConfigError:
        """A problem of one field, with its position."""
        return ConfigError(self.place(path), f"{path}: {message}")

    def placed(self, given: str, default: str) -> Object:
        """The object with its namespace: its own, else the given one, else the default.

        Raises: ConfigError if its own differs from the given one.
        """
        metadata = self.value.get("metadata")
        if not isinstance(metadata, dict):
            return self.value
        own = metadata.get("namespace")
        if own and given and own != given:
            message = f'"{own}" does not match the namespace "{given}" of the command line'
            raise self.problem("metadata.namespace", message)
        return {**self.value, "metadata": {**metadata, "namespace": own or given or default}}

    def place(self, path: str = "") -> str:
        """The file, line and column of a field, or of the object."""
        parts = filter(None, (self.prefix, path))
        return self.document.place(".".join(parts))


def read_manifests(files: Sequence[str]) -> list[Manifest]:
    """The objects in files, in the YAML and JSON files of folders, and in standard input (`-`).

    Raises: ExceptionGroup of ConfigError, one for each mistake in any of them.
    """
    entries = readable(files)
    if mistakes := [entry for entry in entries if isinstance(entry, ConfigError)]:
        raise ExceptionGroup("manifests", mistakes)
    return [entry for entry in entries if isinstance(entry, Manifest)]


def readable(files: Sequence[str]) -> list[Manifest | ConfigError]:
    """The objects as of `read_manifests`, with the mistakes of those that cannot be read, in their order."""
    entries: list[Manifest | ConfigError] = []
    for file in files:
        try:
            sources = _sources(file)
        except ConfigError as error:
            entries.append(error)
            continue
        for source in sources:
            try:
                entries += _objects(source)
            except ConfigError as error:
                entries.append(error)
            except ExceptionGroup as group:
                entries += (error for error in leaves(group) if isinstance(error, ConfigError))
    if not entries:
        names = ("<stdin>" if file == STANDARD_INPUT else file for file in files)
        entries.append(ConfigError(", ".join(names), "no objects found"))
    return entries


def _sources(file: str) -> Sequence[str]:
    """The file itself, or the files of a folder by name, without its subfolders.

    Raises: ConfigError for a folder that cannot be read, or without YAML and JSON files.
    """
    folder = Path(file)
    if file == STANDARD_INPUT or not folder.is_dir():
        return [file]
    try:
        files = [str(path) for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES]
    except OSError as error:
        raise ConfigError(file, f"cannot read it: {error.strerror}") from error
    if not files:
        raise ConfigError(file, "no YAML or JSON file found")
    return files


def _objects(source: str) -> Iterator[Manifest]:
    if source == STANDARD_INPUT:
        name, text = "<stdin>", _standard_input()
    else:
        name, text = source, text_of(Path(source))
    for document in documents(name, text):
        yield from _unlisted(document)


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("<stdin>", "expected UTF-8 text") from error


def _unlisted(document: Document) -> Iterator[Manifest]:
    """The object of a document, or each item of a List: kubectl prints several objects as one."""
    value = document.value
    is_list = isinstance(value, dict) and value.get("kind") == "List"
    items: object = value.get("items") if is_list else None
    entries = enumerate(items) if isinstance(items, list) else [(None, value)]
    for index, body in entries:
        prefix = "" if index is None else f"items[{index}]"
        if not isinstance(body, dict):
            raise ConfigError(
                document.place(prefix), ("expected an object with apiVersion and kind")
            )
        yield Manifest(body, document, prefix)
