"""The profiler's configuration, from the user's settings and those that the request fixes.

The profiler accepts two spellings of a key, and prefers the user's. So our settings use one spelling, and
the other one is removed.
"""

from typing import Any

import msgspec
import yaml

from dynamo_graphs.api.request import DynamoGraphDeploymentRequestSpec
from dynamo_graphs.files.yaml_reader import is_deep
from kube_runtime.kind import Object

OUTPUT_FOLDER = "/data"
BASE_FILE = "disagg.yaml"
BASE_FOLDER = "/config"
DEFAULT_MODEL_CACHE_FOLDER = "/opt/model-cache"
_BUILT_BYTES = 200_000
"""A spec with more JSON than this is refused, whatever its YAML is; see `validation.request`."""
_STRING = "tag:yaml.org,2002:str"


def profiler_config(spec: DynamoGraphDeploymentRequestSpec, namespace: str) -> Object:
    """The user's configuration with what the request says in it.

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
    """The configuration as the one argument that the profiler gets: YAML with sorted keys."""
    config = _whole_numbers(profiler_config(spec, namespace))
    text: str = yaml.dump(config, Dumper=_Dumper, allow_unicode=True, width=1 << 20)
    return text


def profiler_config_bytes(spec: DynamoGraphDeploymentRequestSpec, namespace: str) -> int:
    """How long that argument is; 0 if there is none, because validation refuses the configuration.

    Units: bytes of UTF-8; of JSON where that alone is far too long, since building YAML takes long then.
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
    """Whether AI Configurator estimates what else is measured."""
    sweep: object = (spec.profiling_config.config or {}).get("sweep")
    if not isinstance(sweep, dict):
        return False
    for key in ("useAiConfigurator", "use_ai_configurator"):
        if isinstance(sweep.get(key), bool):
            return bool(sweep[key])
    return False


def model_cache(spec: DynamoGraphDeploymentRequestSpec) -> tuple[str, str] | None:
    """The PVC that holds models, and where it is mounted. None means: there is none."""
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
    """The value with `250.0` as `250`, at every depth."""
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
    """PyYAML's emitter without aliases; what would be read as no text is put in double quotes."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the signature is PyYAML's
        return True


def _string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    tag: object = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    style = '"' if tag != _STRING else ("|" if "\n" in text else None)
    return dumper.represent_scalar(_STRING, text, style=style)


_Dumper.add_representer(str, _string)
