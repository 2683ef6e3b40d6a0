"""Settings of all builds, from the administrator's ConfigMap; each of its values is a YAML document."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dynamo_graphs.api.component import ExtraPodMetadata
from dynamo_graphs.files.yaml_reader import documents
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct

CONFIG_MAP = "yatai-image-builder-config"
"""In the namespace `YATAI_IMAGE_BUILDER_NAMESPACE`."""
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
"""Fields of a pod that count, also in lower case, which was the only spelling once."""


class BuilderSettings(Struct, rename=None):
    """What every build has. A request's own value wins, or comes after."""

    extra_pod_metadata: ExtraPodMetadata = ExtraPodMetadata()
    extra_pod_spec: Object = {}
    extra_container_env: tuple[Object, ...] = ()
    default_image_builder_container_resources: Object = {}
    build_args: tuple[str, ...] = ()
    builder_args: tuple[str, ...] = ()


NO_SETTINGS = BuilderSettings()
"""Where the administrator has set nothing."""


def builder_settings(data: Mapping[str, str]) -> BuilderSettings:
    """The settings in a ConfigMap. Keys that are not known are ignored.

    Raises:
        ValueError: a value is not YAML, or not of its type; the message names its key.
    """
    fields = {field.name: field for field in msgspec.structs.fields(BuilderSettings)}
    settings: dict[str, Any] = {}
    for key, text in data.items():
        if key in fields:
            try:
                (document,) = documents(key, text)
                settings[key] = msgspec.convert(document.value, fields[key].type)
            except ExceptionGroup as group:
                mistakes = "; ".join(map(str, group.exceptions[:3]))
                raise ValueError(f"ConfigMap {CONFIG_MAP}: {mistakes}") from group
            except (ConfigError, ValueError) as error:
                raise ValueError(f"ConfigMap {CONFIG_MAP}: {key}: {error}") from error
    settings["extra_pod_spec"] = pod_fields(settings.get("extra_pod_spec", {}))
    return BuilderSettings(**settings)


def pod_fields(pod: Object) -> Object:
    """The fields of a pod that a build takes over."""
    renamed = {_NAMES.get(name.lower(), ""): value for name, value in pod.items() if value}
    return {name: value for name, value in renamed.items() if name}
