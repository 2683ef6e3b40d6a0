"""The objects in files, folders and standard input, with their positions."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cyclopts import CycloptsError

from dynamo_graphs.ages import counted
from dynamo_operator.component.api import GROUP
from dynamo_operator.crds import RESOURCES
from dynamo_operator.documents import Document, documents
from dynamo_operator.process.flags import text_of
from dynamo_operator.shared.problems import nearest
from kube_runtime.errors import ConfigError, ConfigErrors, leaves, visible
from kube_runtime.schema import definition_of
from kube_runtime.types.meta import Object, Resource

STANDARD_INPUT = "-"
DEFAULT_NAMESPACE = "default"
"""The namespace of objects where neither they nor the command line name one."""
KINDS = frozenset(resource.KIND.name for resource in RESOURCES)
_SUFFIXES = (".yaml", ".yml", ".json")
_POSITION = re.compile(r":([0-9]+):([0-9]+)\Z")


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


def position(place: str) -> tuple[str, int, int]:
    """The file, line and column of `FILE:LINE:COLUMN` or `FILE`; line and column are 0 without them."""
    match = _POSITION.search(place)
    return (place[: match.start()], int(match[1]), int(match[2])) if match else (place, 0, 0)


def read_manifests(files: Sequence[str], *, is_recursive: bool = False) -> list[Manifest]:
    """The objects in files, in the YAML and JSON files of folders, and in standard input (`-`).

    Raises: ConfigErrors, one for each mistake in any of them.
    """
    entries = readable(files, is_recursive=is_recursive)
    if mistakes := [entry for entry in entries if isinstance(entry, ConfigError)]:
        raise ConfigErrors("manifests", mistakes)
    return [entry for entry in entries if isinstance(entry, Manifest)]


def readable(files: Sequence[str], *, is_recursive: bool = False) -> list[Manifest | ConfigError]:
    """The objects as of `read_manifests`, with the mistakes of those that cannot be read, in their order.

    As for kubectl, the sub-folders of a folder count if `is_recursive`; if not, stderr names them.
    """
    entries: list[Manifest | ConfigError] = []
    for file in files:
        for source in _sources(file, is_recursive=is_recursive):
            if isinstance(source, ConfigError):
                entries.append(source)
                continue
            try:
                entries += _objects(source)
            except* ConfigError as group:
                entries += leaves(group)
    if not entries:
        names = ("<stdin>" if file == STANDARD_INPUT else file for file in files)
        entries.append(ConfigError(", ".join(names), "no objects found"))
    return entries


def _sources(file: str, *, is_recursive: bool) -> list[str | ConfigError]:
    """The files that a path stands for, and what prevents reading a folder.

    Hidden folders, such as `.github`, are no part of a folder: their YAML files are seldom manifests.
    """
    root = Path(file)
    if file == STANDARD_INPUT or not root.is_dir():
        return [file]
    sources: list[str | ConfigError] = []
    beside: dict[str, None] = {}  # sub-folders with manifests that are not read

    def report(error: OSError) -> None:
        sources.append(ConfigError(str(error.filename), f"cannot read it: {error.strerror}"))

    for folder, folders, names in os.walk(root, onerror=report):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        manifests = sorted(name for name in names if name.endswith(_SUFFIXES))
        if is_recursive or Path(folder) == root:
            sources += [str(Path(folder, name)) for name in manifests]
        elif manifests:
            beside[Path(folder).relative_to(root).parts[0]] = None
    hint = f"{counted(len(beside), 'sub-folder')} with manifests not read: {', '.join(beside)}; -R reads them"
    if not sources:
        return [ConfigError(file, f"no YAML or JSON file found{f'; {hint}' if beside else ''}")]
    if beside:
        print(f"note: {visible(file)}: {visible(hint)}", file=sys.stderr)
    return sources


def _objects(source: str) -> Iterator[Manifest]:
    name, is_file = ("<stdin>", False) if source == STANDARD_INPUT else (source, True)
    try:
        text = text_of(Path(source)) if is_file else sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(name, "expected UTF-8 text") from error
    for document in documents(name, text):
        yield from _unlisted(document)


def _unlisted(document: Document) -> Iterator[Manifest]:
    """The object of a document, or each item of a List: kubectl prints several objects as one."""
    value = document.value
    is_list = isinstance(value, dict) and value.get("kind") == "List"
    items: object = value.get("items") if is_list else None
    entries = enumerate(items) if isinstance(items, list) else [(None, value)]
    for index, body in entries:
        prefix = "" if index is None else f"items[{index}]"
        if not isinstance(body, dict):
            message = "expected an object with apiVersion and kind"
            raise ConfigError(document.place(prefix), message)
        yield Manifest(body, document, prefix)


def selected(names: Sequence[str]) -> tuple[type[Resource], ...]:
    """The kinds with these names, in this order; without names, all current kinds.

    Raises: CycloptsError for a name that no kind has.
    """
    from dynamo_legacy.api import RESOURCES as LEGACY

    by_name = kinds_by_name((*RESOURCES, *LEGACY))
    for name in names:
        if name.lower() not in by_name:
            kinds = ", ".join(resource.KIND.name for resource in RESOURCES)
            raise CycloptsError(f'unknown kind "{name}" (expected one of {kinds})')
    return tuple(dict.fromkeys(by_name[name.lower()] for name in names)) or RESOURCES


def kinds_by_name(resources: Sequence[type[Resource]]) -> dict[str, type[Resource]]:
    """The kinds by every name that kubectl accepts, in lower case."""
    return {
        name.lower(): resource
        for resource in resources
        for name in (
            resource.KIND.name,
            resource.KIND.plural,
            str(resource.KIND),
            *definition_of(resource).short_names,
        )
    }
