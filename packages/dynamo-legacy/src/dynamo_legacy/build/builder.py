"""The administrator's settings of all builds, from a ConfigMap whose values are YAML documents."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dynamo_graphs.api.component import ExtraPodMetadata
from dynamo_graphs.files.yaml_reader import documents
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct

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

    Raises:
        ValueError: a value is not one YAML document, or has the wrong type; the message names its key.
    """
    fields = {field.name: field for field in msgspec.structs.fields(BuilderSettings)}
    settings: dict[str, Any] = {}
    for key, text in data.items():
        if key in fields:
            try:
                value = _single_document(key, text)
                if value is not None:
                    settings[key] = msgspec.convert(value, fields[key].type)
            except ExceptionGroup as group:
                mistakes = "; ".join(map(str, group.exceptions[:3]))
                raise ValueError(f"ConfigMap {CONFIG_MAP}: {mistakes}") from group
            except (ConfigError, ValueError) as error:
                raise ValueError(f"ConfigMap {CONFIG_MAP}: {key}: {error}") from error
    settings["extra_pod_spec"] = pod_fields(settings.get("extra_pod_spec", {}))
    return BuilderSettings(**settings)


def _single_document(key: str, text: str) -> object:
    """The value of a YAML document; None if the text is empty."""
    loaded = documents(key, text)
    if len(loaded) > 1:
        raise ValueError(f"expected one YAML document, found {len(loaded)}")
    return loaded[0].value if loaded else None


def pod_fields(pod: Object) -> Object:
    """The supported fields of a pod, in their usual spelling."""
    renamed = {_NAMES.get(name.lower(), ""): value for name, value in pod.items() if value}
    return {name: value for name, value in renamed.items() if name}
