"""`dynamo-operator fetch`: fetch the archive of a build, and unpack it into a folder. Builds run it first.

The variable `SOURCE` has the source as JSON. The operator reads the termination message: the configuration
of the graph, or the error in one line. Neither contains credentials.
"""

import asyncio
import base64
import hashlib
import os
import shutil
import sys
import zlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, NoReturn
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec

from dynamo_graphs.files.yaml_reader import documents
from dynamo_legacy.api.nim_request import HttpSource, OciSource, PvcSource, S3Source, Source
from dynamo_legacy.build.image import parse_reference
from dynamo_legacy.build.plan import COMPRESSED
from dynamo_legacy.build.source import (
    CREDENTIALS,
    HEADERS,
    MOUNTED,
    STORE_USER,
    TOKEN_HEADER,
    TOKEN_KEY,
)
from dynamo_legacy.names import GRAPH_CONFIG_KEY
from dynamo_operator.legacy.registry import Registry, RegistryError, login_of, registry_session
from dynamo_operator.legacy.unpack import MOST_BYTES, BadArchive, unpack
from kube_runtime.errors import ConfigError
from kube_runtime.text import cut

_MOST_OF_MESSAGE: Final = 4000
"""Bytes; the kubelet keeps 4,096 of a termination message."""
_MOST_OF_ERROR: Final = 500
"""Characters of an error; the message of a condition has room for 600."""
_MOST_OF_CONFIG: Final = 1024**2
_TERMINATION_LOG: Final = Path("/dev/termination-log")
_DOCKERFILE: Final = PurePosixPath("env/docker/Dockerfile")
_CHUNK: Final = 1024**2
_SILENCE_SECONDS: Final = 60.0
PERMANENT, TEMPORARY = 42, 1
"""Exit codes: errors that a retry does not fix, and all others."""


class NotFetched(Exception):
    """A server did not provide the archive; a retry may help."""


def fetch(into: Path, dockerfile: str = "") -> None:
    """Fetch and unpack the archive of a build. Builds run this.

    Parameters
    ----------
    into
        Folder for the files of the archive; it must not exist.
    dockerfile
        Path of the Dockerfile in the archive (default: env/docker/Dockerfile, else Dockerfile).
    """
    try:
        source = msgspec.json.decode(os.environ["SOURCE"], type=Source)
        with asyncio.Runner() as runner:
            runner.run(_fetched(source, into))
        _require_dockerfile(into, dockerfile)
        _TERMINATION_LOG.write_text(graph_message(into), encoding="utf-8")
    except (BadArchive, msgspec.DecodeError, ValueError) as error:  # such as an invalid URL
        _end(error, PERMANENT)
    except (NotFetched, RegistryError, aiohttp.ClientError, OSError, TimeoutError) as error:
        _end(error, TEMPORARY)


def _end(error: Exception, code: int) -> NoReturn:
    text = cut(" ".join(str(error).split()), _MOST_OF_ERROR) or type(error).__name__
    sys.stderr.write(f"error: {text}\n")
    _TERMINATION_LOG.write_text(text, encoding="utf-8")
    sys.exit(code)


async def _fetched(source: Source, into: Path) -> None:
    if source.config_map is not None:
        _copied(Path(MOUNTED), into)
        return
    if source.pvc is not None:
        mounted = _mounted(source.pvc)
        if mounted.is_dir():
            _copied(mounted, into)
        else:
            with mounted.open("rb") as archive:
                unpack(archive, into)
        return
    archive_file = into.with_name("archive.tar")
    try:
        digest = await _downloaded(source, archive_file)
        expected = source.http.sha256 if source.http else None
        if expected and digest != expected:
            raise BadArchive(f"the archive has sha256 {digest}, expected {expected}")
        with archive_file.open("rb") as archive:
            unpack(archive, into)
    finally:
        archive_file.unlink(missing_ok=True)


def graph_message(folder: Path) -> str:
    """The configuration of the graph as a termination message; "" if the archive has none that fits.

    Raises:
        BadArchive: it is not YAML.
    """
    files = sorted(folder.rglob(GRAPH_CONFIG_KEY))
    file = next((file for file in files if _is_inside(file, folder)), None)
    if file is None or file.stat().st_size > _MOST_OF_CONFIG:
        return ""
    try:
        loaded = documents(GRAPH_CONFIG_KEY, file.read_text(encoding="utf-8"))
    except (ConfigError, UnicodeError) as error:
        raise BadArchive(f"{GRAPH_CONFIG_KEY}: {error}") from error
    except ExceptionGroup as group:
        raise BadArchive("; ".join(map(str, group.exceptions[:3]))) from group
    if len(loaded) > 1:
        raise BadArchive(f"{GRAPH_CONFIG_KEY}: expected one document, found {len(loaded)}")
    document = loaded[0].value if loaded else None
    text = msgspec.json.encode(_reduced(document))
    if len(text) > _MOST_OF_MESSAGE:
        text = COMPRESSED.encode() + base64.b64encode(zlib.compress(text, 9))
    return text.decode() if len(text) <= _MOST_OF_MESSAGE else ""


_KEPT: Final = ("dynamo", "resources", "autoscaling", "workers")


def _reduced(document: object) -> object:
    """Keep what the operator reads of the configuration; a wrong shape stays, so that it is refused."""
    if not isinstance(document, dict):
        return document
    services = document.get("services")
    if isinstance(services, list):
        services = [_reduced_service(service) for service in services]
    both = {name: document.get(name) for name in ("service", "entry_service")}
    return {**both, "services": services}


def _reduced_service(service: object) -> object:
    if not isinstance(service, dict):
        return service
    config = service.get("config")
    if isinstance(config, dict):
        config = {name: config[name] for name in _KEPT if name in config}
    kept = {name: service[name] for name in ("name", "dependencies") if name in service}
    return {**kept, "config": config}


def _require_dockerfile(folder: Path, dockerfile: str) -> None:
    """Ensure that the Dockerfile is where the builder expects it.

    Raises:
        BadArchive: there is none.
    """
    path = PurePosixPath(dockerfile) if dockerfile else _DOCKERFILE
    if path.is_absolute() or ".." in path.parts:
        raise BadArchive(f"dockerfile {dockerfile}: outside of the archive")
    file, usual = folder / path, folder / "Dockerfile"
    if not dockerfile and not file.is_file() and _is_inside(usual, folder):
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(usual, file)
    if not file.is_file() or not _is_inside(file, folder):
        raise BadArchive(f"the archive has no {path}")


def _is_inside(file: Path, folder: Path) -> bool:
    return file.resolve().is_relative_to(folder.resolve()) and file.is_file()


def _mounted(source: PvcSource) -> Path:
    root = Path(MOUNTED)
    target = (root / (source.path or "").lstrip("/")).resolve()
    if not target.is_relative_to(root.resolve()) or not target.exists():
        raise BadArchive(f"pvc.path {source.path}: not found on the volume")
    return target


def _copied(source: Path, into: Path) -> None:
    """Copy a folder; links stay links, so no file from elsewhere is copied."""
    is_config = source == Path(MOUNTED) and (source / "..data").exists()
    hidden = shutil.ignore_patterns("..*")  # the kubelet's own folders of a ConfigMap
    shutil.copytree(source, into, symlinks=not is_config, ignore=hidden if is_config else None)


async def _downloaded(source: Source, to: Path) -> str:
    """Download the archive to a file, and return its SHA-256 in hex."""
    if source.s3 is not None:
        return await _written(_of_store(source.s3), to)
    if source.oci is not None:
        return await _of_registry(source.oci, to)
    if source.http is not None:
        return await _written(_of_url(source.http.url, _headers(source.http)), to)
    raise BadArchive("the source is empty")


async def _written(chunks: AsyncIterator[bytes], to: Path) -> str:
    digest, size = hashlib.sha256(), 0
    with to.open("wb") as file:
        async for chunk in chunks:
            size += len(chunk)
            if size > MOST_BYTES:
                raise BadArchive(f"the archive is too large ({MOST_BYTES} bytes at most)")
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _headers(source: HttpSource) -> Mapping[str, str]:
    folder = Path(HEADERS)
    if source.header_secret_name:
        files = [file for file in sorted(folder.iterdir()) if file.is_file()]
        return {file.name: file.read_text(encoding="utf-8").strip() for file in files}
    if user := os.environ.get(STORE_USER):
        return {TOKEN_HEADER: f"{user}:{os.environ.get(TOKEN_KEY, '')}"}
    return {}


async def _of_url(url: str, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Download a URL."""
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=_SILENCE_SECONDS, sock_read=_SILENCE_SECONDS
    )
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        for _ in range(5):
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308) and "Location" in answer.headers:
                    url, headers = redirected(url, answer.headers["Location"], headers)
                    continue
                if answer.status != 200:  # noqa: PLR2004
                    raise NotFetched(f"{_shown(url)}: status {answer.status}")
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    yield chunk
                return
    raise NotFetched(f"{_shown(url)}: too many redirects")


def redirected(
    url: str, location: str, headers: Mapping[str, str]
) -> tuple[str, Mapping[str, str]]:
    """The target of a redirect and the headers for it: none for another host, which may be a store of blobs.

    Raises:
        BadArchive: it leads from TLS to none.
    """
    target = urljoin(url, location)
    before, after = urlsplit(url), urlsplit(target)
    if before.scheme == "https" and after.scheme != "https":
        raise BadArchive(f"{_shown(url)}: redirected to a URL without TLS")
    return target, headers if before.netloc == after.netloc else {}


def _shown(url: str) -> str:
    """The URL without user, password and query, which may be credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}"


async def _of_registry(source: OciSource, to: Path) -> str:
    """Download the single layer of an artifact."""
    try:
        reference = parse_reference(source.ref)
    except ValueError as error:
        raise BadArchive(str(error)) from error
    config = Path(CREDENTIALS) / "config.json"
    login = login_of(config.read_bytes(), reference.host) if config.is_file() else None
    async with registry_session() as session:
        registry = Registry(session, reference, source.insecure, login, token_host=None)
        layers = (await registry.manifest()).get("layers") or []
        if len(layers) != 1 or not isinstance(layers[0].get("digest"), str):
            raise BadArchive(f"{source.ref}: expected one layer, found {len(layers)}")
        digest: str = layers[0]["digest"]
        actual = await _written(_of_url(*registry.blob(digest)), to)
    if digest != f"sha256:{actual}":
        raise BadArchive(f"{source.ref}: the layer has sha256 {actual}, expected {digest}")
    return actual


async def _of_store(source: S3Source) -> AsyncIterator[bytes]:
    """Download an object of an S3-compatible store; credentials and region are in AWS variables."""
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    parts = urlsplit(source.uri)
    endpoint = source.endpoint or (
        "https://storage.googleapis.com" if parts.scheme == "gs" else None
    )
    options: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
    if "AWS_ACCESS_KEY_ID" not in os.environ:
        options["skip_signature"] = True
    is_plain = bool(endpoint and endpoint.startswith("http://"))
    store = S3Store(parts.netloc, client_options={"allow_http": is_plain}, **options)
    try:
        answer = await store.get_async(parts.path.lstrip("/"))
        async for chunk in answer.stream(min_chunk_size=_CHUNK):
            yield bytes(chunk)
    except (BaseError, OSError) as error:  # a missing object is a FileNotFoundError only
        text = " ".join(str(error).partition("Debug source:")[0].split())
        raise NotFetched(f"{source.uri}: {cut(text, _MOST_OF_ERROR)}") from error
