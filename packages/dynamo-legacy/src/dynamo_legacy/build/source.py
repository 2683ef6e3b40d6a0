"""The source of a request's archive, and the variables and volumes that fetching it needs."""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dynamo_legacy.api import DynamoNimRequest, HttpSource, S3Source, Source
from dynamo_legacy.names import SharedSecret, object_of, tag_parts
from dynamo_legacy.settings import LegacySettings
from dynamo_operator.component.api import ExtraPodMetadata
from dynamo_operator.documents import documents
from kube_runtime.errors import ConfigError, ConfigErrors, Invalid
from kube_runtime.types.meta import Object, Struct, from_plain
from kube_runtime.wire import url_path

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
    """Parse the name of an image as container runtimes do. Raises: ValueError if it is invalid."""
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

    Raises: ValueError if the tag or the registry is invalid, or there is neither an image nor a registry.
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
        raise ValueError("no registry: set DOCKER_REGISTRY_SERVER at the operator, or image in the request")
    tag = image_tag(request, settings)
    inside = settings.registry_in_cluster_server or settings.registry_server
    name, pushed = (
        f"{server.rstrip('/')}/{settings.registry_repository}:{tag}"
        for server in (settings.registry_server, inside)
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


def _host(server: str) -> str:
    host = server.rstrip("/").partition("/")[0]
    return _HUB if host.endswith(_HUB) else host


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


TOKEN_SECRET = "yatai-api-token"  # noqa: S105  # the name of a Secret
TOKEN_KEY = "YATAI_API_TOKEN"  # noqa: S105  # the name of a variable
TOKEN_HEADER = "X-YATAI-API-TOKEN"  # noqa: S105  # the name of a header
STORE_USER = "YATAI_STORE_USER"
"""Variable of the fetching container: the user in front of the token in its header."""

HEADERS = "/var/run/dynamo/headers"
CREDENTIALS = "/var/run/dynamo/registry"
MOUNTED = "/var/run/dynamo/source"
"""Folders of the fetching container: HTTP headers as files, `config.json`, the volume of the source."""


class SourceUnavailable(ValueError):
    """The request has no source for its archive."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """A source with the variables and volumes that fetching it needs.

    `volumes` are mounted at `mounts`, read-only. `is_store`: the source is the operator's store.
    """

    source: Source
    environment_from: tuple[Object, ...] = ()
    volumes: tuple[Object, ...] = ()
    mounts: tuple[Object, ...] = ()
    is_store: bool = False

    @property
    def document(self) -> str:
        """The source as JSON for the fetching program, with names of Secrets, never their content."""
        return msgspec.json.encode(self.source).decode()


def fetch_of(request: DynamoNimRequest, settings: LegacySettings) -> Fetch:
    """How the archive of a request is fetched.

    Raises: SourceUnavailable if the request names no source, and the operator has no store.
    """
    spec = request.spec
    own = tuple(spec.downloader_container_env_from)
    source = spec.source or (_of_url(spec.download_url) if spec.download_url else None)
    if source is None:
        return _of_store(request, settings, own)
    if source.s3 is not None:
        return Fetch(source, (*own, *_from_secret(source.s3.secret_name)))
    if source.http is not None:
        return _with_secret(source, own, "headers", source.http.header_secret_name, HEADERS)
    if source.oci is not None:
        return _with_secret(source, own, "source-registry", source.oci.secret_name, CREDENTIALS)
    if source.pvc is not None:
        claim = {"claimName": source.pvc.claim_name, "readOnly": True}
        return _mounted(source, own, {"persistentVolumeClaim": claim})
    if source.config_map is not None:
        return _mounted(source, own, {"configMap": {"name": source.config_map.name}})
    raise SourceUnavailable("spec.source is empty (expected one of oci, s3, http, pvc, configMap)")


def token_secret(namespace: str, settings: LegacySettings) -> Object:
    """The Secret with the token for the store of archives."""
    token = settings.api_token.reveal().encode()
    return shared_secret(namespace, TOKEN_SECRET, "Opaque", {TOKEN_KEY: token})


def store_user(settings: LegacySettings) -> str:
    """The user name of the operator at the store."""
    return f"yatai-image-builder:{settings.cluster_name}"


def store_url(tag: str, settings: LegacySettings) -> str:
    """The URL of the archive of a tag in the store. Raises: ValueError if it is not a tag, or is a path."""
    repository, version = tag_parts(tag)
    try:
        path = url_path("api", "v1", "dynamo_nims", repository, "versions", version, "download")
    except Invalid as error:
        raise ValueError(f"tag: {error.message}") from error
    return settings.endpoint.rstrip("/") + path


def _of_url(url: str) -> Source:
    if url.startswith(("s3://", "gs://")):
        return Source(s3=S3Source(uri=url))
    if url.startswith(("http://", "https://")):
        return Source(http=HttpSource(url=url))
    raise SourceUnavailable(
        f'spec.downloadUrl: unknown scheme in "{url[:80]}" (expected http://, https://, s3:// or gs://)'
    )


def _of_store(request: DynamoNimRequest, settings: LegacySettings, own: tuple[Object, ...]) -> Fetch:
    if not settings.endpoint:
        raise SourceUnavailable(
            "no archive to build from: set spec.source or spec.downloadUrl in the DynamoNimRequest, create "
            f"a DynamoNim {request.metadata.name} with an image that exists, or set YATAI_ENDPOINT at the "
            "operator"
        )
    source = Source(http=HttpSource(url=store_url(request.spec.bento_tag, settings)))
    return Fetch(source, (*own, *_from_secret(TOKEN_SECRET)), is_store=True)


def _from_secret(name: str | None) -> tuple[Object, ...]:
    return ({"secretRef": {"name": name}},) if name else ()


def _with_secret(
    source: Source, own: tuple[Object, ...], volume: str, secret: str | None, folder: str
) -> Fetch:
    if not secret:
        return Fetch(source, own)
    content: Object = {"secretName": secret}
    if folder == CREDENTIALS:
        content["items"] = [{"key": ".dockerconfigjson", "path": "config.json"}]
    mount = {"name": volume, "mountPath": folder, "readOnly": True}
    return Fetch(source, own, ({"name": volume, "secret": content},), (mount,))


def _mounted(source: Source, own: tuple[Object, ...], volume: Object) -> Fetch:
    mount = {"name": "source", "mountPath": MOUNTED, "readOnly": True}
    return Fetch(source, own, ({"name": "source", **volume},), (mount,))


CONFIG_MAP = "yatai-image-builder-config"
"""The name of the ConfigMap, in the namespace `YATAI_IMAGE_BUILDER_NAMESPACE`."""
_NAMES = {
    name.lower(): name
    for name in (
        "priorityClassName",
        "schedulerName",
        "nodeSelector",
        "affinity",
        "tolerations",
        "topologySpreadConstraints",
        "serviceAccountName",
    )
}
"""The supported fields of a pod by lower-case name, which was the only spelling once."""


class BuilderSettings(Struct, rename=None):
    """The settings of all builds. Values of a request take precedence, or are appended."""

    extra_pod_metadata: ExtraPodMetadata = ExtraPodMetadata()
    extra_pod_spec: Object = {}
    extra_container_env: tuple[Object, ...] = ()
    default_image_builder_container_resources: Object = {}
    build_args: tuple[str, ...] = ()
    builder_args: tuple[str, ...] = ()


NO_SETTINGS = BuilderSettings()
"""The settings without a ConfigMap."""


def builder_settings(data: Mapping[str, str]) -> BuilderSettings:
    """Parse the settings in a ConfigMap. Unknown keys and empty values are ignored.

    Raises: ValueError if a value is not one YAML document, or has the wrong type; the message names its key.
    """
    fields = {field.name: field for field in msgspec.structs.fields(BuilderSettings)}
    settings: dict[str, Any] = {}
    for key, text in data.items():
        if key in fields:
            try:
                loaded = [document.value for document in documents(key, text)]
                if len(loaded) == 1 and loaded[0] is not None:
                    settings[key] = from_plain(loaded[0], fields[key].type)
            except ConfigErrors as group:
                mistakes = "; ".join(map(str, group.exceptions[:3]))
                raise ValueError(f"ConfigMap {CONFIG_MAP}: {mistakes}") from group
            except (ConfigError, ValueError) as error:
                raise ValueError(f"ConfigMap {CONFIG_MAP}: {key}: {error}") from error
            if len(loaded) > 1:
                message = f"expected one YAML document, found {len(loaded)}"
                raise ValueError(f"ConfigMap {CONFIG_MAP}: {key}: {message}")
    settings["extra_pod_spec"] = pod_fields(settings.get("extra_pod_spec", {}))
    return BuilderSettings(**settings)


def pod_fields(pod: Object) -> Object:
    """The supported fields of a pod, in their usual spelling."""
    renamed = {_NAMES.get(name.lower(), ""): value for name, value in pod.items() if value}
    return {name: value for name, value in renamed.items() if name}
