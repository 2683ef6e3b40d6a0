"""Images of the Open Container Initiative (OCI), and Containerfiles, without a container engine.

Images are reproducible: entries are sorted and have constant owners and times, so that a digest changes only
when an image does.

Source: the image specification, version 1.1: image layout, manifest, configuration.
"""

import hashlib
import io
import json
import platform
import re
import shlex
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Self

from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Fields, Object

_KEYWORDS = frozenset(
    "FROM ARG ENV WORKDIR COPY RUN USER ENTRYPOINT CMD LABEL EXPOSE".split()  # noqa: SIM905 - read as one
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


# Anything else is an error with its line. So an image has one description, which other builders
# accept as well.
#
# Source: the Dockerfile reference; variables of ARG and ENV, without modifiers.
@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `text` follows its keyword."""

    keyword: str
    text: str
    line: int

    def error(self, reason: str) -> ConfigError:
        """An error about this instruction."""
        return ConfigError(f"Containerfile:{self.line}", f"{self.keyword}: {reason}")


@dataclass(frozen=True, slots=True)
class BuildStage:
    """One stage. `base` is an image or the name of an earlier stage."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """A COPY, from another stage, or from the build context if `stage` is empty."""

    stage: str
    sources: tuple[str, ...]
    target: str


def parse(text: str, arguments: Mapping[str, str]) -> list[BuildStage]:
    """Parse the stages; arguments are substituted in FROM only.

    Raises: ConfigError.
    """
    declared: dict[str, str] = {}
    stages: list[BuildStage] = []
    for instruction in _instructions(text):
        if instruction.keyword == "FROM":
            base, _, name = substitute(instruction.text, declared).partition(" AS ")
            stages.append(BuildStage(base.strip(), name.strip(), ()))
        elif stages:
            last = stages.pop()
            stages.append(BuildStage(last.base, last.name, (*last.instructions, instruction)))
        elif instruction.keyword == "ARG":
            name, value = argument(instruction, arguments)
            declared[name] = value
        else:
            raise instruction.error("must not come before FROM")
    if not stages:
        raise ConfigError("Containerfile", "has no FROM")
    return stages


def argument(instruction: Instruction, given: Mapping[str, str]) -> tuple[str, str]:
    """The name of an ARG and its value: the given one, else its default."""
    name, _, default = instruction.text.partition("=")
    return name, given.get(name, default)


def pairs(instruction: Instruction, variables: Mapping[str, str]) -> dict[str, str]:
    """The pairs of an ENV or LABEL, with variables substituted.

    Raises: ConfigError.
    """
    values = {}
    for part in shlex.split(instruction.text):
        name, equals, value = part.partition("=")
        if not equals:
            raise instruction.error(f"{part!r} has no value")
        values[name] = substitute(value, variables)
    return values


def command(instruction: Instruction) -> tuple[str, ...]:
    """The command of an ENTRYPOINT or CMD, which must be a JSON list.

    Raises: ConfigError.
    """
    try:
        words = json.loads(instruction.text)
    except json.JSONDecodeError as error:
        raise instruction.error("must be a JSON list") from error
    return tuple(words)


def copy(instruction: Instruction, variables: Mapping[str, str]) -> Copy:
    """Parse a COPY.

    Raises: ConfigError.
    """
    words = shlex.split(substitute(instruction.text, variables))
    stage = ""
    while words and words[0].startswith("--"):
        option = words.pop(0)
        name, _, stage = option.partition("=")
        if name != "--from":
            raise instruction.error(f"{name} is not understood here")
    if len(words) < 2:
        raise instruction.error("needs a source and a target")
    *sources, target = words
    return Copy(stage, tuple(sources), target)


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}`; unknown names become empty, as in other builders."""
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], ""), text)


def place(path: str, folder: str) -> PurePosixPath:
    """The absolute path in an image of one that may be relative to the working folder."""
    return PurePosixPath("/", folder, path)


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of a .dockerignore file, each with whether it is negated by `!`; the last match decides.

    Supports names and `**/name` only.
    """

    rules: Sequence[tuple[re.Pattern[str], bool]]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Read the file of a folder; without it, nothing is ignored."""
        file = folder / ".dockerignore"
        lines = file.read_text().splitlines() if file.exists() else []
        rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        return cls([(_pattern(rule.removeprefix("!")), rule.startswith("!")) for rule in rules])

    def ignores(self, path: PurePosixPath) -> bool:
        """Whether to ignore the file with this relative path."""
        ignored = False
        for pattern, is_negated in self.rules:
            if any(pattern.fullmatch(str(ancestor)) for ancestor in (path, *path.parents)):
                ignored = not is_negated
        return ignored


def _instructions(text: str) -> Iterator[Instruction]:
    joined, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("#") or (not stripped and not joined):
            continue
        start = start or number
        joined += stripped
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        keyword, _, rest = joined.partition(" ")
        instruction = Instruction(keyword.upper(), rest.strip(), start)
        if instruction.keyword not in _KEYWORDS:
            raise instruction.error("is not understood here")
        yield instruction
        joined, start = "", 0


def _pattern(rule: str) -> re.Pattern[str]:
    parts = []
    for part in re.split(r"(\*\*/|\*|\?)", rule.strip("/")):
        special = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
        parts.append(special.get(part, re.escape(part)))
    return re.compile("".join(parts))


_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_CREATED = "1980-01-01T00:00:00Z"
_CREATED_SECONDS = 315532800  # the same time; the oldest that every archive format supports
_CHUNK_BYTES = 1 << 20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: an uncompressed tar file with its digest."""

    file: Path
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Settings:
    """How a container of the image starts. Empty settings are omitted."""

    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    folder: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TarEntry:
    """One file of a layer: its path in the image, and its source."""

    place: PurePosixPath
    source: Path


def architecture() -> str:
    """This machine's architecture, by the name that images use."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def write_layer(file: Path, entries: Iterable[TarEntry]) -> Layer:
    """Write a layer with these entries and the folders above them, all owned by root."""
    file.parent.mkdir(parents=True, exist_ok=True)
    ordered = sorted(entries, key=lambda entry: entry.place.parts)
    written: set[PurePosixPath] = set()
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        for entry in ordered:
            for folder in reversed(entry.place.parents):
                if folder not in written and folder.parts not in ((), ("/",)):
                    written.add(folder)
                    archive.addfile(_folder_info(folder))
            written.add(entry.place)
            _add(archive, entry)
    return existing_layer(file)


def existing_layer(file: Path) -> Layer:
    """An existing tar file as a layer."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return Layer(file, f"sha256:{digest}", file.stat().st_size)


def folder_entries(folder: Path, place: PurePosixPath) -> Iterator[TarEntry]:
    """A folder and everything in it, for a path in the image."""
    yield TarEntry(place, folder)
    for path in sorted(folder.rglob("*")):
        yield TarEntry(place / path.relative_to(folder), path)


def write_image(
    file: Path, name: str, layers: Sequence[Layer], settings: Settings, *, architecture: str
) -> str:
    """Write an image as one tar file in the OCI layout; return the digest of its manifest.

    `name` is the full reference under which a runtime imports it, such as `localhost/pause:1`.
    """
    config = _json(_config(layers, settings, architecture))
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _descriptor(_CONFIG, config),
        "layers": [{"mediaType": _LAYER, "digest": layer.digest, "size": layer.size} for layer in layers],
    }
    platform = {"architecture": architecture, "os": "linux"}
    partial = file.with_name(f"{file.name}.partial")
    with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
        digest = _write_metadata(archive, name, manifest, config, platform)
        for layer in dict.fromkeys(layers):  # equal layers are one blob
            with layer.file.open("rb") as content:
                archive.addfile(_file_info(_blob(layer.digest), layer.size), content)
    partial.rename(file)
    return digest


def relabelled(file: Path, new: Path, name: str, labels: Mapping[str, str]) -> str:
    """Copy an image that `write_image` wrote, with another name and more labels."""
    with tarfile.open(file) as archive:
        [described] = _read(archive, "index.json")["manifests"]
        manifest = _read(archive, _blob(described["digest"]))
        config = _read(archive, _blob(manifest["config"]["digest"]))
        config["config"].setdefault("Labels", {}).update(labels)
        changed = _json(config)
        manifest["config"] = _descriptor(_CONFIG, changed)
        with tarfile.open(new, "w", format=tarfile.PAX_FORMAT) as target:
            digest = _write_metadata(target, name, manifest, changed, described["platform"])
            for layer in manifest["layers"]:
                blob = _blob(layer["digest"])
                target.addfile(_file_info(blob, layer["size"]), archive.extractfile(blob))
    return digest


def _read(archive: tarfile.TarFile, name: str) -> Any:
    content = archive.extractfile(name)
    assert content is not None
    return json.load(content)


def _write_metadata(
    archive: tarfile.TarFile,
    name: str,
    manifest: Fields,
    config: bytes,
    platform: Mapping[str, str],
) -> str:
    """Write everything but the layers; return the digest of the manifest."""
    content = _json(manifest)
    described = _descriptor(_MANIFEST, content) | {
        "annotations": {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        },
        "platform": platform,
    }
    index = _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [described]})
    _add_bytes(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
    _add_bytes(archive, "index.json", index)
    for blob in (config, content):
        _add_bytes(archive, _blob(_digest(blob)), blob)
    return _digest(content)


def _config(layers: Sequence[Layer], settings: Settings, architecture: str) -> Object:
    start = {
        "Entrypoint": list(settings.entrypoint),
        "Cmd": list(settings.command),
        "Env": [f"{name}={value}" for name, value in settings.environment.items()],
        "User": settings.user,
        "WorkingDir": settings.folder,
        "Labels": dict(settings.labels),
        "ExposedPorts": {port: {} for port in settings.ports},
    }
    return {
        "created": _CREATED,
        "architecture": architecture,
        "os": "linux",
        "config": {key: value for key, value in start.items() if value},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        "history": [{"created": _CREATED} for _ in layers],
    }


def _add(archive: tarfile.TarFile, entry: TarEntry) -> None:
    info = archive.gettarinfo(entry.source, arcname=str(entry.place).lstrip("/"))
    archive.inodes = {}  # type: ignore[attr-defined] # archive hard links as files
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = _CREATED_SECONDS
    info.pax_headers = {}
    if info.isreg():
        with entry.source.open("rb") as content:
            archive.addfile(info, content)
    else:
        archive.addfile(info)


def _folder_info(place: PurePosixPath) -> tarfile.TarInfo:
    info = tarfile.TarInfo(str(place).lstrip("/"))
    info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, _CREATED_SECONDS
    return info


def _file_info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o644, _CREATED_SECONDS
    return info


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_file_info(name, len(content)), io.BytesIO(content))


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _descriptor(kind: str, content: bytes) -> Object:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
