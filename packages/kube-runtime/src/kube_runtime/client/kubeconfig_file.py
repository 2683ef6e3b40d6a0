"""Read kubeconfig files, and choose the context with its cluster and user.

KUBECONFIG may list several files. The first file that names an entry wins, and a relative path is relative
to the file that contains it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec
import yaml

from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object

T = TypeVar("T")
_QUOTED = re.compile(r"""['"][^<].*""", re.DOTALL)
"""Content of the file in an error of the YAML reader; its own words look like `'<block end>'`."""


class _Part(msgspec.Struct, frozen=True, rename="kebab"):
    """Base of the parts of a kubeconfig; names in the file have dashes."""


class Cluster(_Part, frozen=True):
    """The address of an API server, and how to trust it."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Object] | None = None


class ExecVariable(_Part, frozen=True):
    """An environment variable of an exec plugin."""

    name: str
    value: str


class ExecPlugin(_Part, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool = False


class AuthProvider(_Part, frozen=True):
    """A login that the client does itself."""

    name: str
    config: dict[str, str] | None = None


class User(_Part, frozen=True):
    """The credentials of a user."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(name="tokenFile", default=None)
    username: str | None = None
    password: str | None = None
    exec: ExecPlugin | None = None
    auth_provider: AuthProvider | None = None


class _Context(_Part, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedCluster(_Part, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(_Part, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(_Part, frozen=True):
    name: str
    context: _Context | None = None


class _File(_Part, frozen=True):
    current_context: str | None = None
    contexts: list[_NamedContext] | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """A named entry of a kubeconfig, and the file that contains it."""

    path: Path
    name: str
    value: T

    def content(self, field: str, file: str) -> bytes:
        """Read a file that this entry refers to.

        Raises:
            ConfigError: it cannot be read.
        """
        path = self.path.parent / Path(file).expanduser()
        try:
            return path.read_bytes()
        except OSError as error:
            message = f"{self.name}: {field} {path}: {error.strerror or error}"
            raise ConfigError(str(self.path), message) from error


class Choice(NamedTuple):
    """The entries of a context; the namespace is empty if the context has none."""

    cluster: Named[Cluster]
    user: Named[User]
    namespace: str


def choose(paths: Sequence[Path], context: str | None) -> Choice:
    """Read the files and resolve a context; by default the current context of the first file that has one.

    Raises:
        ConfigError: a file cannot be used, or refers to an entry that does not exist.
    """
    files = {path: _read(path) for path in paths}
    source = ":".join(str(path) for path in paths)
    current = context or next((f.current_context for f in files.values() if f.current_context), "")
    if not current:
        raise ConfigError(source, "no current-context is set; name a context")
    contexts = [
        Named(path, entry.name, entry.context or _Context())
        for path, file in files.items()
        for entry in file.contexts or ()
    ]
    clusters = [
        Named(path, entry.name, entry.cluster or Cluster())
        for path, file in files.items()
        for entry in file.clusters or ()
    ]
    users = [
        Named(path, entry.name, entry.user or User())
        for path, file in files.items()
        for entry in file.users or ()
    ]
    chosen = _named(contexts, current, "context", source)
    cluster = _named(clusters, chosen.value.cluster, "cluster", source)
    user = Named(chosen.path, "(no user)", User())
    if chosen.value.user:
        user = _named(users, chosen.value.user, "user", source)
    return Choice(cluster, user, chosen.value.namespace or "")


def _named(entries: list[Named[T]], name: str, section: str, source: str) -> Named[T]:
    for entry in entries:
        if entry.name == name:
            return entry
    names = ", ".join(sorted({entry.name for entry in entries})) or "none"
    raise ConfigError(source, f"there is no {section} {name!r}; known: {names}")


def _read(path: Path) -> _File:
    try:
        content = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ConfigError(str(path), error.strerror or str(error)) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        # Without its cause, whose text quotes the line: it may contain a token.
        raise ConfigError(str(path), f"not YAML: {_where(error)}") from None
    if content is None:
        raise ConfigError(str(path), "the file is empty")
    try:
        return msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        raise ConfigError(str(path), f"not a kubeconfig: {error}") from error


def _where(error: Exception) -> str:
    """The problem and its position, without content of the file."""
    match error:
        case yaml.MarkedYAMLError(problem=str() as problem, problem_mark=yaml.Mark() as mark):
            detail = _QUOTED.sub("(…)", problem)
            return f"line {mark.line + 1}, column {mark.column + 1}: {detail}"
        case yaml.reader.ReaderError():
            return f"position {error.position}: {error.reason}"
        case UnicodeDecodeError():
            return f"position {error.start}: {error.reason}"
    return type(error).__name__
