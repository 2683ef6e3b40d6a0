"""The profiler's configuration: the user's, with the fields that the request sets.

The profiler accepts some keys in two spellings. Where the operator sets a key, it removes the other spelling,
which would take precedence.
"""

from typing import Any

import msgspec
import yaml

from dynamo_graphs.api.profiling import is_variable
from dynamo_graphs.api.request import DynamoGraphDeploymentRequestSpec
from dynamo_graphs.files.yaml_reader import is_deep
from kube_runtime.kind import Object

OUTPUT_FOLDER = "/data"
BASE_FILE = "disagg.yaml"
BASE_FOLDER = "/config"
DEFAULT_MODEL_CACHE_FOLDER = "/opt/model-cache"
_BUILT_BYTES = 200_000
"""A larger configuration, as JSON, is rejected without building its YAML; see `validation.request`."""
_STRING = "tag:yaml.org,2002:str"


def profiler_config(spec: DynamoGraphDeploymentRequestSpec, namespace: str) -> Object:
    """Return the user's configuration with the fields of the request.

    Raises:
        TypeError: `deployment` or `engine` is not an object; validation refuses that.
    """
    config: Object = dict(spec.profiling_config.config or {})
    deployment, engine = _section(config, "deployment"), _section(config, "engine")
    deployment.setdefault("namespace", namespace)
    deployment["model"] = spec.model
    overrides = spec.deployment_overrides
    if overrides is not None and overrides.workers_image:
        deployment.pop("dgdImage", None)
        deployment["dgd_image"] = overrides.workers_image
    config.pop("outputDir", None)
    config["output_dir"] = OUTPUT_FOLDER
    engine["backend"] = spec.backend
    if spec.profiling_config.config_map_ref is not None:
        engine["config"] = f"{BASE_FOLDER}/{BASE_FILE}"
    return config | {"deployment": deployment, "engine": engine}


def profiler_config_text(spec: DynamoGraphDeploymentRequestSpec, namespace: str) -> str:
    """Return the configuration as the profiler's argument: YAML with sorted keys."""
    config = _whole_numbers(profiler_config(spec, namespace))
    text: str = yaml.dump(config, Dumper=_Dumper, allow_unicode=True, width=1 << 20)
    return text


def profiler_config_bytes(spec: DynamoGraphDeploymentRequestSpec, namespace: str) -> int:
    """The length of that argument in bytes of UTF-8; 0 for a configuration that validation rejects.

    For a configuration that is far too large it is the length as JSON, since building YAML would take long.
    """
    config = spec.profiling_config.config or {}
    sections = (config.get("deployment"), config.get("engine"))
    if is_deep(config) or not all(
        section is None or isinstance(section, dict) for section in sections
    ):
        return 0
    size = len(msgspec.json.encode(config))
    return size if size > _BUILT_BYTES else len(profiler_config_text(spec, namespace).encode())


def uses_ai_configurator(spec: DynamoGraphDeploymentRequestSpec) -> bool:
    """Whether AI Configurator estimates results instead of measuring them."""
    sweep: object = (spec.profiling_config.config or {}).get("sweep")
    if not isinstance(sweep, dict):
        return False
    for key in ("useAiConfigurator", "use_ai_configurator"):
        if isinstance(sweep.get(key), bool):
            return bool(sweep[key])
    return False


def model_cache(spec: DynamoGraphDeploymentRequestSpec) -> tuple[str, str] | None:
    """The PVC with models and its mount path, or None."""
    deployment: object = (spec.profiling_config.config or {}).get("deployment")
    cache: Any = deployment.get("modelCache") if isinstance(deployment, dict) else None
    claim = cache.get("pvcName") if isinstance(cache, dict) else None
    if not isinstance(claim, str) or not claim:
        return None
    folder: object = cache.get("mountPath")
    if not isinstance(folder, str) or not folder:
        folder = DEFAULT_MODEL_CACHE_FOLDER
    return claim, folder


def _section(config: Object, name: str) -> Object:
    section = config.get(name)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise TypeError(f"{name} is not an object")
    return dict(section)


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


def worker_variables(spec: DynamoGraphDeploymentRequestSpec) -> list[Object]:
    """The variables of generated workers: `deployment.envs`, then those of the profiler; the first counts."""
    deployment: object = (spec.profiling_config.config or {}).get("deployment")
    given: Any = deployment.get("envs") if isinstance(deployment, dict) else None
    variables = [*(given if isinstance(given, list) else []), *spec.profiling_config.env]
    by_name: dict[str, Object] = {}
    for variable in variables:
        if is_variable(variable):
            by_name.setdefault(variable["name"], variable)
    return list(by_name.values())
