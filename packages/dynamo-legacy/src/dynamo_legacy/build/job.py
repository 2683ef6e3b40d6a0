"""Render the Job that builds an image: one container fetches the archive, the next builds and pushes.

Arguments are lists: no shell interprets text of a user, and no argument is secret.
Sources: the recorded operator for names, labels, volumes and arguments; docs/decisions/0045 for the rest.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import msgspec

from dynamo_legacy.api import DynamoNimRequest
from dynamo_legacy.build import source
from dynamo_legacy.names import REPOSITORY, BuildJob, object_of, tag_parts
from dynamo_legacy.settings import LegacySettings
from dynamo_operator.component.api import ExtraPodMetadata
from kube_runtime.types.meta import Object

REQUEST = "yatai.ai/bento-request"
IS_BUILDER = "yatai.ai/is-bento-image-builder"
HASH = "yatai.ai/bento-request-hash"
"""Annotation of a Job and of a DynamoNim: the `build_hash` of the request that it was created from."""
REBUILD = "nvidia.com/rebuild"
"""Annotation of a request: a new value builds the image again."""
FORCE = "yatai.ai/force-build-image"
"""Annotation of a request: `true` builds although the image exists, once per state of the request."""
BUILDER_ACCOUNT = "yatai.ai/yatai-image-builder-pod"
"""`true` on the ServiceAccount of builds that name none."""

FETCHER, BUILDER = "dynamonim-downloader", "builder"
FAILS_AT_ONCE = {BUILDER: (1, 42), FETCHER: (42,)}
"""Exit codes that a retry does not fix: 1 of `buildctl` and kaniko, 42 of old images and a bad archive."""
_CONTEXT = "/workspace/buildcontext"
_DOCKERFILE = "env/docker/Dockerfile"
_BUILDKIT_STATE = "/home/user/.local/share/buildkit"
"""Source: BuildKit's examples/kubernetes/job.rootless.yaml; the image's own volume may be `nosuid,nodev`."""
_CLIENT = "/var/run/dynamo/buildkit"
_SEPARATE = "yatai.ai/yatai-image-builder-separate-models"
_CACHE_NAMESPACE = "BUILDKIT_CACHE_MOUNT_NS"
"""Separates caches of `RUN --mount=type=cache`. Source: the reference of BuildKit's Dockerfile frontend."""
_BUILD_HASH = "yatai.ai/bento-request-image-builder-hash"
_LIFETIME_SECONDS = 86_400
_RETRIES = 2
_USER = 1000
_NAME_LIMIT = 63
_NANOSECONDS = re.compile(r"[0-9]{1,19}", re.ASCII)
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:h|ms|us|µs|ns|m|s))+", re.ASCII)
_DURATION_PART = re.compile(r"([0-9.]+)(h|ms|us|µs|ns|m|s)", re.ASCII)
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_RESTRICTED: Object = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": _USER,
    "runAsGroup": _USER,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


_UNCONFINED: Object = {  # its user namespace needs syscalls that the default profiles forbid
    "runAsUser": _USER,
    "runAsGroup": _USER,
    "seccompProfile": {"type": "Unconfined"},
    "appArmorProfile": {"type": "Unconfined"},
}


@dataclass(frozen=True, slots=True)
class Build:
    """The inputs of a Job beside the request. `account` is its ServiceAccount."""

    image: source.BuiltImage
    fetch: source.Fetch
    settings: LegacySettings
    builder: source.BuilderSettings = source.NO_SETTINGS
    account: str = "default"


@dataclass(frozen=True, slots=True)
class _Engine:
    """What builds: its container, with the volumes that it alone mounts. kaniko unpacks layers as root."""

    image: str
    command: str
    arguments: Sequence[str]
    variables: Mapping[str, str]
    security: Object = field(default_factory=dict)
    volumes: Sequence[Object] = ()
    mounts: Sequence[Object] = ()


def build_hash(request: DynamoNimRequest) -> str:
    """A digest of the spec and of the annotations that trigger builds."""
    kept = {key: request.metadata.annotations.get(key, "") for key in (REBUILD, FORCE, _BUILD_HASH)}
    text = msgspec.json.encode((request.spec, kept), order="deterministic")
    return hashlib.sha256(text).hexdigest()


def job_name(request: DynamoNimRequest) -> str:
    """The name of the Job for this state of the request, deterministic."""
    suffix = f"-{build_hash(request)[:10]}"
    stem = f"nim-build-{request.metadata.name}".replace(".", "-")[: _NAME_LIMIT - len(suffix)]
    return stem.rstrip("-") + suffix


def build_seconds(timeout: int | str | None) -> int | None:
    """Parse the timeout of a build to whole seconds; None means no limit.

    Raises: ValueError if it is neither an integer of nanoseconds nor a duration.
    """
    if timeout is None:
        return None
    text = str(timeout)
    if _NANOSECONDS.fullmatch(text):
        seconds = int(text) * _SECONDS["ns"]
    elif _DURATION.fullmatch(text):
        parts = _DURATION_PART.findall(text)
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    else:
        raise ValueError(f'invalid duration "{text[:80]}" (expected for example 30m or 1h30m)')
    return max(1, round(seconds))


def build_job(request: DynamoNimRequest, build: Build) -> Object:
    """The Job that builds the image of a request.

    Raises: ValueError if the tag or the timeout of the request is invalid, or the engine has no image.
    """
    repository, version = tag_parts(request.spec.bento_tag)
    labels = {
        REQUEST: _label(request.metadata.name),
        IS_BUILDER: "true",
        REPOSITORY: _label(repository),
        "yatai.ai/bento": _label(version),
    }
    deadline = build_seconds(request.spec.image_build_timeout)
    rules = [
        {"action": "FailJob", "onExitCodes": {"containerName": name, "operator": "In", "values": list(codes)}}
        for name, codes in FAILS_AT_ONCE.items()
    ]
    metadata = {
        "name": job_name(request),
        "namespace": request.metadata.namespace,
        "labels": {**labels, _SEPARATE: "false"},
        "annotations": {HASH: build_hash(request)},
    }
    spec = {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": _RETRIES,
        "ttlSecondsAfterFinished": _LIFETIME_SECONDS,
        **({"activeDeadlineSeconds": deadline} if deadline else {}),
        "podFailurePolicy": {"rules": rules},
        "template": {"metadata": _pod_metadata(request, build, labels), "spec": _pod(request, build, labels)},
    }
    return object_of(BuildJob, metadata, spec=spec)


def _pod_metadata(request: DynamoNimRequest, build: Build, labels: dict[str, str]) -> Object:
    common = build.builder.extra_pod_metadata
    own = request.spec.image_builder_extra_pod_metadata or ExtraPodMetadata()
    copied = {_BUILD_HASH: request.metadata.annotations.get(_BUILD_HASH, "")}
    return {
        "labels": common.labels | own.labels | labels,
        "annotations": copied | common.annotations | own.annotations,
    }


def _pod(request: DynamoNimRequest, build: Build, labels: dict[str, str]) -> Object:
    extra = source.pod_fields(request.spec.image_builder_extra_pod_spec or {})
    volumes: list[Object] = [{"name": "yatai", "emptyDir": {}}, {"name": "workspace", "emptyDir": {}}]
    mounts: list[Object] = [
        {"name": "yatai", "mountPath": "/yatai"},
        {"name": "workspace", "mountPath": "/workspace"},
    ]
    if secret := build.image.secret:
        items = [{"key": ".dockerconfigjson", "path": "config.json"}]
        volumes.append({"name": secret, "secret": {"secretName": secret, "items": items}})
        mounts.append({"name": secret, "mountPath": "/kaniko/.docker/"})
    fetcher, engine = _fetcher(request, build, mounts), _engine(request, build)
    pod = build.builder.extra_pod_spec | extra
    return {
        **pod,
        "affinity": _affinity(pod.get("affinity") or {}, labels),
        "serviceAccountName": pod.get("serviceAccountName") or build.account,
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        **({"securityContext": {"fsGroup": _USER}} if engine.security else {}),
        "initContainers": [fetcher],
        "containers": [_builder(request, build, engine, mounts)],
        "volumes": [*volumes, *engine.volumes, *build.fetch.volumes],
    }


def _affinity(given: Object, labels: dict[str, str]) -> Object:
    term = {
        "weight": 100,
        "podAffinityTerm": {
            "labelSelector": {"matchLabels": {REQUEST: labels[REQUEST]}},
            "topologyKey": "kubernetes.io/hostname",
        },
    }
    near: Object = given.get("podAffinity") or {}
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    return {**given, "podAffinity": {**near, key: [*near.get(key, ()), term]}}


def _fetcher(request: DynamoNimRequest, build: Build, mounts: Sequence[Object]) -> Object:
    settings, fetch = build.settings, build.fetch
    if not settings.fetch_image:
        raise ValueError(
            "no image to fetch archives with: set INTERNAL_IMAGES_BENTO_DOWNLOADER at the operator to "
            "the operator's own image"
        )
    environment = [
        {"name": "AWS_EC2_METADATA_DISABLED", "value": "true"},
        {"name": "SOURCE", "value": _escaped(fetch.document)},
    ]
    if fetch.is_store:
        environment.append({"name": source.STORE_USER, "value": source.store_user(settings)})
    words = [f"--into={_CONTEXT}", f"--dockerfile={request.spec.dockerfile or ''}"]
    return {
        "name": FETCHER,
        "image": settings.fetch_image,
        "command": ["dynamo-operator", "fetch"],
        "args": [_escaped(word) for word in words],
        "env": [*environment, *_environment(request, build)],
        **({"envFrom": list(fetch.environment_from)} if fetch.environment_from else {}),
        "resources": {
            "requests": {"cpu": "100m", "memory": "1000Mi"},
            "limits": {"cpu": "1000m", "memory": "3000Mi"},
        },
        "securityContext": {**_RESTRICTED, "readOnlyRootFilesystem": True},
        "volumeMounts": [*mounts, *fetch.mounts],
    }


def _builder(request: DynamoNimRequest, build: Build, engine: _Engine, mounts: Sequence[Object]) -> Object:
    resources = (
        request.spec.image_builder_container_resources
        or build.builder.default_image_builder_container_resources
    )
    variables = {"DOCKER_CONFIG": "/kaniko/.docker/", **engine.variables}
    environment = [{"name": name, "value": value} for name, value in variables.items()]
    return {
        "name": BUILDER,
        "image": engine.image,
        "imagePullPolicy": "Always",
        "command": [engine.command],
        "args": [_escaped(argument) for argument in (*engine.arguments, *build.builder.builder_args)],
        "env": [*environment, *_environment(request, build)],
        **({"resources": resources} if resources else {}),
        **({"securityContext": engine.security} if engine.security else {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*mounts, *engine.mounts],
    }


def _environment(request: DynamoNimRequest, build: Build) -> Iterable[Object]:
    return (*build.builder.extra_container_env, *request.spec.image_builder_extra_container_env)


def _engine(request: DynamoNimRequest, build: Build) -> _Engine:
    settings = build.settings
    arguments = (*build.builder.build_args, *request.spec.build_args)
    if settings.build_engine == "kaniko":
        if not settings.kaniko_image:
            raise ValueError("no image of kaniko: set INTERNAL_IMAGES_KANIKO at the operator")
        words = _kaniko(request, build) + [f"--build-arg={argument}" for argument in arguments]
        variables = {"GGCR_EXPERIMENT_ESTARGZ": "1"} if settings.estargz else {}
        return _Engine(settings.kaniko_image, "/kaniko/executor", words, variables)
    is_rootless, has_daemon = settings.build_engine == "buildkit-rootless", bool(settings.buildkit_url)
    if not (is_rootless or has_daemon):
        raise ValueError(
            "BUILDKIT_URL is not set: the engine buildkit needs a daemon (buildkit-rootless needs none)"
        )
    client, volumes, mounts = list[str](), list[Object](), list[Object]()
    if has_daemon:  # the last one counts: no build uses the caches of another namespace
        arguments = (*arguments, f"{_CACHE_NAMESPACE}={request.metadata.namespace}")
        client = ["--addr", settings.buildkit_url]
    if has_daemon and (secret := settings.buildkit_client_secret):
        files = {"tlscacert": "ca.crt", "tlscert": "tls.crt", "tlskey": "tls.key"}
        client += (f"--{flag}={_CLIENT}/{file}" for flag, file in files.items())
        volumes = [{"name": "buildkit-client", "secret": {"secretName": secret}}]
        mounts = [{"name": "buildkit-client", "mountPath": _CLIENT, "readOnly": True}]
    elif not has_daemon:
        volumes = [{"name": "buildkitd", "emptyDir": {}}]
        mounts = [{"name": "buildkitd", "mountPath": _BUILDKIT_STATE}]
    options = [word for argument in arguments for word in ("--opt", f"build-arg:{argument}")]
    words = [*client, "build", *_buildctl(request, build), *options]
    command = "buildctl" if has_daemon else "buildctl-daemonless.sh"
    if not is_rootless:
        security = {**_RESTRICTED, "readOnlyRootFilesystem": True}
        return _Engine(settings.buildkit_image, command, words, {}, security, volumes, mounts)
    flags = "--oci-worker-no-process-sandbox"
    flags += " --oci-worker-snapshotter=stargz" if settings.estargz else ""
    variables = {"BUILDKITD_FLAGS": flags}
    return _Engine(settings.buildkit_rootless_image, command, words, variables, _UNCONFINED, volumes, mounts)


def _buildctl(request: DynamoNimRequest, build: Build) -> list[str]:
    settings, image = build.settings, build.image
    file = PurePosixPath(request.spec.dockerfile or _DOCKERFILE)
    insecure = "true" if image.is_insecure else "false"
    output = f"type=image,name={image.pushed},push=true,registry.insecure={insecure}"
    if settings.estargz:
        output += ",oci-mediatypes=true,compression=estargz,force-compression=true"
    words = ["--frontend", "dockerfile.v0", "--local", f"context={_CONTEXT}"]
    words += ["--local", f"dockerfile={_CONTEXT}/{file.parent}", "--output", output]
    if file.name != "Dockerfile":
        words += ["--opt", f"filename={file.name}"]
    if cache := settings.buildkit_cache_repository:
        ref = f"type=registry,ref={cache}:buildcache"
        exported = f"{ref},mode=max,compression=zstd,ignore-error=true"
        words += ["--export-cache", exported, "--import-cache", ref]
    return words


def _kaniko(request: DynamoNimRequest, build: Build) -> list[str]:
    settings, image = build.settings, build.image
    cache = settings.kaniko_cache_repository or image.pushed.rpartition(":")[0]
    mode = settings.kaniko_snapshot_mode
    return [
        f"--context={_CONTEXT}",
        "--verbosity=info",
        "--image-fs-extract-retry=3",
        "--cache=false",
        f"--cache-repo={cache}",
        "--compressed-caching=false",
        "--compression=zstd",
        "--compression-level=-7",
        f"--dockerfile={_CONTEXT}/{request.spec.dockerfile or _DOCKERFILE}",
        f"--insecure={'true' if image.is_insecure else 'false'}",
        f"--destination={image.pushed}",
        *([f"--snapshot-mode={mode}"] if mode else []),
    ]


def _escaped(text: str) -> str:
    """Escape `$(NAME)`, which the kubelet would expand."""
    return text.replace("$(", "$$(")


def _label(text: str) -> str:
    """A text as label value: hashed if it is too long or invalid as one."""
    if len(text) <= _NAME_LIMIT and re.fullmatch(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?", text, re.ASCII):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:_NAME_LIMIT]
