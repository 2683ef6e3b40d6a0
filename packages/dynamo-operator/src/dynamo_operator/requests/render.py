"""The profiling Job of a DynamoGraphDeploymentRequest (docs/requests.md, "The contract with a profiler")."""

from functools import cache

import msgspec
import yaml

from dynamo_operator import labels, names
from dynamo_operator.documents import is_deep
from dynamo_operator.graph.render import cluster_role_objects
from dynamo_operator.requests import api, extras
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import Job
from kube_runtime.types.meta import Kind, Object, owner_reference

OUTPUT_FOLDER = "/data"
BASE_FILE = "disagg.yaml"
BASE_FOLDER = "/config"
DEFAULT_MODEL_CACHE_FOLDER = "/opt/model-cache"
_OF_DYNAMO_09 = {"pvcMountPath": "mountPath", "modelPathInPvc": "pvcPath", "pvcModelPath": "pvcPath"}
"""Keys of `modelCache` in configurations for later profilers, and their names in Dynamo 0.9."""
_BUILT_BYTES = 200_000
"""A larger one, as JSON, which `--largest-object-bytes` may allow, is rejected without building its YAML."""
_STRING = "tag:yaml.org,2002:str"


# The profiler accepts some keys in two spellings. Where the operator sets a key, it removes the
# other spelling, which would take precedence.
def profiler_config(spec: RequestSpec, namespace: str) -> Object:
    """Return the user's configuration, which is valid, with the fields of the request."""
    config: Object = dict(spec.profiling_config.config or {})
    deployment, engine = (dict(config.get(name) or {}) for name in ("deployment", "engine"))
    deployment.setdefault("namespace", namespace)
    deployment["model"] = spec.model
    overrides = spec.deployment_overrides
    if overrides is not None and overrides.workers_image:
        deployment.pop("dgdImage", None)
        deployment["dgd_image"] = overrides.workers_image
    if cache := _cache_section(deployment):
        deployment["modelCache"] = cache
    config.pop("outputDir", None)
    config["output_dir"] = OUTPUT_FOLDER
    engine["backend"] = spec.backend
    if spec.profiling_config.config_map_ref is not None:
        engine["config"] = f"{BASE_FOLDER}/{BASE_FILE}"
    return config | {"deployment": deployment, "engine": engine}


def profiler_config_text(spec: RequestSpec, namespace: str) -> str:
    """Return the configuration as the profiler's argument: YAML with sorted keys."""
    config = _whole_numbers(profiler_config(spec, namespace))
    text: str = yaml.dump(config, Dumper=_Dumper, allow_unicode=True, width=1 << 20)
    return text


def profiler_config_bytes(spec: RequestSpec, namespace: str) -> int:
    """The length of that argument in bytes of UTF-8; 0 for a configuration that validation rejects.

    If it is far too large, it is the length as JSON, since building YAML would take long.
    """
    config = spec.profiling_config.config or {}
    sections = (config.get("deployment"), config.get("engine"))
    if is_deep(config) or not all(section is None or isinstance(section, dict) for section in sections):
        return 0
    size = len(msgspec.json.encode(config))
    return size if size > _BUILT_BYTES else len(profiler_config_text(spec, namespace).encode())


def uses_ai_configurator(spec: RequestSpec) -> bool:
    """Whether AI Configurator estimates results instead of measuring them."""
    sweep = section_of(spec.profiling_config.config or {}, "sweep")
    given = (sweep.get(key) for key in ("useAiConfigurator", "use_ai_configurator"))
    return next((value for value in given if isinstance(value, bool)), False)


def model_cache(spec: RequestSpec) -> tuple[str, str] | None:
    """The PVC with models and its mount path, or None."""
    cache = _cache_section(section_of(spec.profiling_config.config or {}, "deployment"))
    claim, folder = cache.get("pvcName"), cache.get("mountPath")
    if not isinstance(claim, str) or not claim:
        return None
    return claim, folder if isinstance(folder, str) and folder else DEFAULT_MODEL_CACHE_FOLDER


def _cache_section(deployment: Object) -> Object:
    """The section `modelCache`, with the keys of Dynamo 0.9 beside those of later versions."""
    cache = section_of(deployment, "modelCache")
    return {_OF_DYNAMO_09[key]: value for key, value in cache.items() if key in _OF_DYNAMO_09} | cache


def section_of(parent: Object, name: str) -> Object:
    """A section of the configuration; empty if it is not set, or not an object."""
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _whole_numbers(value: object) -> object:
    """Convert floats such as `250.0` to integers, at every depth."""
    match value:
        case dict():
            return {key: _whole_numbers(child) for key, child in value.items()}
        case list():
            return [_whole_numbers(child) for child in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


class _Dumper(yaml.CSafeDumper):
    """PyYAML's emitter without aliases; text that would not be read as text is double-quoted."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the signature is PyYAML's
        return True


def _string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    tag: object = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    style = '"' if tag != _STRING else ("|" if "\n" in text else None)
    return dumper.represent_scalar(_STRING, text, style=style)


_Dumper.add_representer(str, _string)


def worker_variables(spec: RequestSpec) -> list[Object]:
    """The variables of generated workers: `deployment.envs`, then those of the profiler; the first counts."""
    given = section_of(spec.profiling_config.config or {}, "deployment").get("envs")
    variables = [*(given if isinstance(given, list) else []), *spec.profiling_config.env]
    by_name: dict[str, Object] = {}
    for variable in variables:
        if api.is_variable(variable):
            by_name.setdefault(variable["name"], variable)
    return list(by_name.values())


PULL_SECRET = "nvcr-imagepullsecret"  # noqa: S105  the name of one
BACKOFF_LIMIT = 3
DEADLINE_SECONDS = 24 * 60 * 60
"""A sweep takes hours; a Job that takes longer than a day probably hangs."""

SHORTEST_TTL_SECONDS = 60
"""The operator must read the cause of a failure before the Job is deleted."""

_USER = 1000
_TOKEN_SECONDS = 3607  # the API server's own choice for tokens of pods
_SCRIPT = "copy_profiling_output.sh"
_OUTPUT, _BASE, _CACHE, _TOKEN = "profiling-output", "profiling-config", "model-cache", "api-access"


_FAILURE_RULES: list[Object] = [
    {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
]
"""A disrupted pod is replaced; a failed container ends the Job."""

_TOKEN_MOUNT: Object = {"name": _TOKEN, "mountPath": api.TOKEN_FOLDER, "readOnly": True}
"""The token at the usual path, where admission then mounts no other one."""

_TOKEN_SOURCES: list[Object] = [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
]
"""What Kubernetes mounts by default, unless the ServiceAccount opts out."""


def profiling_job(
    request: Request,
    spec: RequestSpec,
    settings: RenderSettings,
    base: api.ConfigMapReference | None = None,
    kind: Kind = Request.KIND,
) -> Object:
    """Return the Job; `spec` is the accepted one.

    `base` is the ConfigMap key of the completed base graph; by default that of the spec, if it has one.
    `kind` is that of requests, in its stored version.
    """
    profiling, name = spec.profiling_config, request.metadata.name
    app = "aic-profiler" if uses_ai_configurator(spec) else "dynamo-profiler"
    own = {labels.PROFILING_APP: app, labels.PROFILING_JOB: names.label_value(name)}
    limits: Object = {
        "backoffLimit": BACKOFF_LIMIT if profiling.backoff_limit is None else profiling.backoff_limit,
        "activeDeadlineSeconds": profiling.active_deadline_seconds or DEADLINE_SECONDS,
    }
    if profiling.ttl_seconds_after_finished is not None:
        limits["ttlSecondsAfterFinished"] = max(profiling.ttl_seconds_after_finished, SHORTEST_TTL_SECONDS)
    owner = owner_reference(kind, name, request.metadata.uid)
    pod_labels = {**profiling.labels, labels.REQUEST: names.label_value(name)}
    generation = str(api.accepted_generation(request))
    return {
        "apiVersion": Job.KIND.api_version,
        "kind": Job.KIND.name,
        "metadata": {
            "name": names.profiling_job(name),
            "namespace": request.metadata.namespace,
            "labels": {**profiling.labels, **own, labels.MANAGED_BY: labels.MANAGER},
            "annotations": {**profiling.annotations, labels.REQUEST_GENERATION: generation},
        },
        "spec": {
            **limits,
            "podFailurePolicy": {"rules": _FAILURE_RULES},
            "template": {
                "metadata": _present(labels=pod_labels, annotations=profiling.annotations),
                "spec": _pod(request, spec, settings, base, owner),
            },
        },
    }


def account_objects(namespace: str, spec: RequestSpec, settings: RenderSettings) -> tuple[Object, ...]:
    """Return the ServiceAccount of profiling Jobs, with a RoleBinding to the installation's ClusterRole.

    Empty if the user names another ServiceAccount, and in restricted mode, where the installation has one.
    """
    if settings.restricted_namespace or spec.profiling_config.service_account_name:
        return ()
    role = settings.dgdr_profiling_cluster_role_name
    return cluster_role_objects(namespace, names.PROFILING_SERVICE_ACCOUNT, role)


def missing_settings(spec: RequestSpec, settings: RenderSettings) -> str:
    """Describe the setting of the operator that the Job lacks; "" if nothing is missing."""
    if not (settings.operator_image or settings.profiling_copier_image):
        text = "missing image of the container that saves the results (expected "
        return f"{text}--operator-image or --profiling-copier-image)"
    if not _profiler_image(spec, settings):
        return "missing image of the profiler (expected spec.image, or --operator-image)"
    is_given = settings.restricted_namespace or spec.profiling_config.service_account_name
    if not (is_given or settings.dgdr_profiling_cluster_role_name):
        text = "cluster role name is required: the operator has no "
        return f"{text}--dgdr-profiling-cluster-role-name (`dynamoctl install` sets it)"
    return ""


def placement(profiling: api.ProfilingConfig) -> Object:
    """The fields of a pod about placement and pull secrets, for Jobs and for graphs."""
    return _present(
        tolerations=list(profiling.tolerations),
        nodeSelector=dict(profiling.node_selector),
        affinity=profiling.affinity,
        priorityClassName=profiling.priority_class_name,
        runtimeClassName=profiling.runtime_class_name,
        imagePullSecrets=list(profiling.image_pull_secrets),
    )


def _pod(
    request: Request,
    spec: RequestSpec,
    settings: RenderSettings,
    base: api.ConfigMapReference | None,
    owner: Object,
) -> Object:
    profiling = spec.profiling_config
    placed = placement(profiling)
    secrets = [{"name": PULL_SECRET}]
    secrets += [secret for secret in placed.get("imagePullSecrets", ()) if secret not in secrets]
    return {
        **placed,
        "serviceAccountName": profiling.service_account_name or names.PROFILING_SERVICE_ACCOUNT,
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER},
        "imagePullSecrets": secrets,
        "containers": [
            _profiler(request, spec, settings),
            _copier(request, settings, owner, is_kept=bool(profiling.output_pvc)),
        ],
        "volumes": _volumes(spec, base or profiling.config_map_ref),
    }


def _profiler_image(spec: RequestSpec, settings: RenderSettings) -> str:
    return spec.profiling_config.profiler_image or settings.dgdr_default_image or settings.operator_image


def _profiler(request: Request, spec: RequestSpec, settings: RenderSettings) -> Object:
    profiling, is_later = spec.profiling_config, extras.in_v1beta1(request)
    image, module = _profiler_image(spec, settings), "benchmarks.profiler.profile_sla"
    args = ["--profile-config", profiler_config_text(spec, request.metadata.namespace)]
    if spec.enable_gpu_discovery:
        args.append("--enable-gpu-discovery")
    if is_later:
        text = msgspec.json.encode(extras.written_spec(request, spec, image)).decode()
        module, args = "dynamo.profiler", ["--config", text, "--output-dir", OUTPUT_FOLDER]
    mounts: list[Object] = [{"name": _OUTPUT, "mountPath": OUTPUT_FOLDER}]
    if profiling.config_map_ref is not None:
        mounts.append({"name": _BASE, "mountPath": BASE_FOLDER, "readOnly": True})
    if (cache_ := model_cache(spec)) is not None:
        mounts.append({"name": _CACHE, "mountPath": cache_[1], "readOnly": True})
    if not uses_ai_configurator(spec) or spec.enable_gpu_discovery:
        mounts.append(_TOKEN_MOUNT)
    return {
        "name": api.PROFILER,
        "image": image,
        "command": ["python", "-m", module],
        "args": args,
        "env": _variables(request, profiling, settings),
        **_present(envFrom=list(profiling.env_from), resources=profiling.resources),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _variables(request: Request, profiling: api.ProfilingConfig, settings: RenderSettings) -> list[Object]:
    key = {"name": "hf-token-secret", "key": "HF_TOKEN", "optional": True}
    variables: list[Object] = [
        {"name": "HUGGING_FACE_HUB_TOKEN", "valueFrom": {"secretKeyRef": key}},
        {"name": "NATS_SERVER", "value": settings.nats_address},
        {"name": "ETCD_ENDPOINTS", "value": settings.etcd_address},
    ]
    metadata = request.metadata
    values = (metadata.name, metadata.namespace, metadata.uid)
    own = [{"name": name, "value": value} for name, value in zip(api.OWN_VARIABLES, values, strict=True)]
    users = {entry.get("name") for entry in profiling.env}
    defaults = [entry for entry in variables if entry["name"] not in users and entry.get("value") != ""]
    return [*defaults, *own, *(entry for entry in profiling.env if entry["name"] not in api.OWN_VARIABLES)]


def _copier(request: Request, settings: RenderSettings, owner: Object, *, is_kept: bool) -> Object:
    # The image is the operator's, or one with a shell and kubectl. No shell interprets the values: they are
    # arguments.
    own = {labels.REQUEST: names.label_value(request.metadata.name), labels.MANAGED_BY: labels.MANAGER}
    described = {"metadata": {"labels": own, "ownerReferences": [owner]}}
    metadata = msgspec.json.encode(described).decode()
    output = names.profiling_output(request.metadata.name)
    values = [request.metadata.namespace, output, metadata, OUTPUT_FOLDER, api.PROFILER]
    values += ["fresh"] if is_kept else []
    if extras.in_v1beta1(request):
        values += [*([] if is_kept else [""]), api.FINAL_FILE]
    image, command, first = settings.operator_image, ["dynamo-operator"], ["copy-output"]
    if settings.profiling_copier_image:
        image, command = settings.profiling_copier_image, ["/bin/sh", "-c"]
        first = [script(), api.COPIER]
    return {
        "name": api.COPIER,
        "image": image,
        "command": command,
        "args": [*first, *values],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": _OUTPUT, "mountPath": OUTPUT_FOLDER, "readOnly": True}, _TOKEN_MOUNT],
    }


def _volumes(spec: RequestSpec, base: api.ConfigMapReference | None) -> list[Object]:
    claim = spec.profiling_config.output_pvc
    kept: Object = {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}
    volumes: list[Object] = [{"name": _OUTPUT, **kept}]
    if base is not None:
        item = {"key": base.key, "path": BASE_FILE}
        volumes.append({"name": _BASE, "configMap": {"name": base.name, "items": [item]}})
    if (cache_ := model_cache(spec)) is not None:
        source = {"claimName": cache_[0], "readOnly": True}
        volumes.append({"name": _CACHE, "persistentVolumeClaim": source})
    return [*volumes, {"name": _TOKEN, "projected": {"sources": _TOKEN_SOURCES}}]


@cache
def script() -> str:
    """The text of the copier's script."""
    from importlib.resources import files

    return files("dynamo_operator.requests").joinpath(f"scripts/{_SCRIPT}").read_text("utf-8")


def _present(**fields: object) -> Object:
    return {name: value for name, value in fields.items() if value}
