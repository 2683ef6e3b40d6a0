"""The source of a request's archive, and the variables and volumes that fetching it needs."""

from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from dynamo_legacy.api.nim_request import (
    DynamoNimRequest,
    HttpSource,
    S3Source,
    Source,
)
from dynamo_legacy.build.image import shared_secret
from dynamo_legacy.names import tag_parts
from dynamo_legacy.settings import LegacySettings
from kube_runtime.kind import Object

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

    Raises:
        SourceUnavailable: the request names no source, and the operator has no store.
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
    """The URL of the archive of a tag in the store.

    Raises:
        ValueError: it is not a tag.
    """
    repository, version = (quote(part, safe="") for part in tag_parts(tag))
    base = settings.endpoint.rstrip("/")
    return f"{base}/api/v1/dynamo_nims/{repository}/versions/{version}/download"


def _of_url(url: str) -> Source:
    if url.startswith(("s3://", "gs://")):
        return Source(s3=S3Source(uri=url))
    if url.startswith(("http://", "https://")):
        return Source(http=HttpSource(url=url))
    raise SourceUnavailable(
        f'spec.downloadUrl: unknown scheme in "{url[:80]}" (expected http://, https://, s3:// or gs://)'
    )


def _of_store(
    request: DynamoNimRequest, settings: LegacySettings, own: tuple[Object, ...]
) -> Fetch:
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
