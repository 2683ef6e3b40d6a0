"""The image of a request, its registry, and the Secret to log in with."""

import base64
import hashlib
import re
from dataclasses import dataclass

import msgspec

from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.names import tag_parts
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.types import SharedSecret, object_of
from kube_runtime.kind import Object

REGISTRY_SECRET = "yatai-regcred"  # noqa: S105  # the name of a Secret
"""The Secret with the administrator's login in each namespace with requests."""
SHARED_MARKER = ("nvidia.com/shared-by-requests", "true")
"""The label of Secrets that all requests of a namespace share."""
STORAGE_NAMESPACE = "yatai.ai/bento-storage-namespace"
"""Annotation of a request: the prefix of its image's tag."""
INSECURE = "yatai.ai/docker-registry-insecure"
"""Annotation of a request with its own registry: `true` disables TLS."""

_MOST_OF_TAG = 128
"""Source: the distribution specification, `reference`."""
_PREFIX = "yatai."
_HUB = "docker.io"
_HUB_CREDENTIALS = "https://index.docker.io/v1/"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
_REFERENCE = re.compile(
    r"(?:(?P<host>[A-Za-z0-9.-]+(?::[0-9]{1,5})?)/)?"
    rf"(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
_MOST_OF_REFERENCE = 512


@dataclass(frozen=True, slots=True)
class Reference:
    """The parts of an image's name. `version` is its digest if it has one, else its tag."""

    host: str
    repository: str
    version: str


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """The image of a request: pods run `name`, the build pushes to `pushed` in the same registry.

    `secret` is the Secret to push and pull with, "" for none. `is_own`: the request names an image in a
    registry other than the administrator's.
    """

    name: str
    pushed: str
    is_insecure: bool
    secret: str
    is_own: bool


def parse_reference(text: str) -> Reference:
    """Parse the name of an image as container runtimes do.

    Raises:
        ValueError: it is invalid.
    """
    match = _REFERENCE.fullmatch(text) if len(text) <= _MOST_OF_REFERENCE else None
    host, path = (match["host"] or "", match["path"]) if match else ("", "")
    if host and "." not in host and ":" not in host and host != "localhost":
        host, path = "", f"{host}/{path}"
    if match is None or path != path.lower():
        raise ValueError(
            f'invalid image "{text[:_MOST_OF_TAG]}" (for example registry.example.com/team/chat:1)'
        )
    if not host:
        host, path = _HUB, path if "/" in path else f"library/{path}"
    return Reference(host, path, match["digest"] or match["tag"] or "latest")


def built_image(request: DynamoNimRequest, settings: LegacySettings) -> BuiltImage:
    """The image of a request.

    Raises:
        ValueError: the tag or the registry is invalid, or there is neither an image nor a registry.
    """
    spec, annotations = request.spec, request.metadata.annotations
    if spec.docker_config_json_secret_name or spec.image:
        if not spec.image:
            raise ValueError("dockerConfigJsonSecretName needs image")
        reference = parse_reference(spec.image)
        is_own = reference.host != _host(settings.registry_server)
        insecure = spec.oci_registry_insecure
        if insecure is None:
            insecure = annotations.get(INSECURE) == "true"
        shared = REGISTRY_SECRET if settings.registry_username and not is_own else ""
        secret = spec.docker_config_json_secret_name or shared
        is_insecure = insecure if is_own else not settings.registry_secure
        return BuiltImage(spec.image, spec.image, is_insecure, secret, is_own)
    if not settings.registry_server:
        raise ValueError(
            "no registry: set DOCKER_REGISTRY_SERVER at the operator, or image in the request"
        )
    tag = image_tag(request, settings)
    inside = settings.registry_in_cluster_server or settings.registry_server
    name, pushed = (
        f"{_repository(server, settings)}:{tag}" for server in (settings.registry_server, inside)
    )
    parse_reference(pushed)
    return BuiltImage(
        name=name,
        pushed=pushed,
        is_insecure=not settings.registry_secure,
        secret=REGISTRY_SECRET if settings.registry_username else "",
        is_own=False,
    )


def image_tag(request: DynamoNimRequest, settings: LegacySettings) -> str:
    """The tag under which the image of a request is stored.

    Raises:
        ValueError: the request's tag is not `<repository>:<version>`, or has characters that no image has.
    """
    repository, version = tag_parts(request.spec.bento_tag)
    tail = f"{repository}.{version}{'.esgz' if settings.estargz else ''}"
    prefix = request.metadata.annotations.get(STORAGE_NAMESPACE, "")
    if not prefix and settings.image_has_namespace:
        prefix = request.metadata.namespace
    before = f"{prefix}." if prefix else ""
    tag = f"{_PREFIX}{before}{tail}"
    if len(tag) > _MOST_OF_TAG:
        tag = f"{_PREFIX}{before}{_md5(tail)}"
    if len(tag) > _MOST_OF_TAG:
        tag = f"{_PREFIX}{_md5(before + tail)}"
    if not _TAG.fullmatch(tag):  # `buildctl` would read a comma in it as the end of the name
        raise ValueError(
            f'invalid image tag "{tag}", made from bentoTag and the annotation {STORAGE_NAMESPACE} '
            '(expected letters, digits, "_", "." and "-")'
        )
    return tag


def registry_secret(namespace: str, settings: LegacySettings) -> Object:
    """The Secret with the administrator's login, for the builds and the pods of a namespace."""
    login = f"{settings.registry_username}:{settings.registry_password.reveal()}"
    auth = {"auth": base64.b64encode(login.encode()).decode()}
    servers = [settings.registry_server, _host(settings.registry_server)]
    if settings.registry_in_cluster_server:
        servers.append(_host(settings.registry_in_cluster_server))
    if _host(settings.registry_server) == _HUB:
        servers.append(_HUB_CREDENTIALS)
    content = {".dockerconfigjson": msgspec.json.encode({"auths": dict.fromkeys(servers, auth)})}
    return shared_secret(namespace, REGISTRY_SECRET, "kubernetes.io/dockerconfigjson", content)


def shared_secret(namespace: str, name: str, type_: str, content: dict[str, bytes]) -> Object:
    """A Secret that all requests of a namespace share."""
    metadata = {"name": name, "namespace": namespace, "labels": dict([SHARED_MARKER])}
    data = {key: base64.b64encode(value).decode() for key, value in content.items()}
    return object_of(SharedSecret, metadata, type=type_, data=data)


def _repository(server: str, settings: LegacySettings) -> str:
    return f"{server.rstrip('/')}/{settings.registry_repository}"


def _host(server: str) -> str:
    host = server.rstrip("/").partition("/")[0]
    return _HUB if host.endswith(_HUB) else host


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
