"""The settings of an operator with the charts' defaults, for commands without a cluster."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dynamo_graphs.settings import RenderSettings, fields
from dynamo_operator.cli.configuration import read_settings
from dynamoctl.installation.manifests import operator_pod


def render_settings(file: Path | None) -> RenderSettings:
    """The render settings of the file, else of a default installation.

    Raises: ExceptionGroup of ConfigError.
    """
    if file is not None:
        return read_settings({}, file=file, environment=os.environ).render
    settings = read_settings(installed_flags(), environment=os.environ).render
    # The gateways that the cluster's administrator allows are unknown here.
    return msgspec.structs.replace(settings, allowed_gateways="*")


def installed_flags() -> Mapping[str, str]:
    """The render flags of the packaged Deployment, by name."""
    names = {
        name for field in fields() if field.path[0] == "render" for name in field.setting.flags
    }
    return {
        name: value
        for container in operator_pod()["containers"]
        for name, _, value in (text.lstrip("-").partition("=") for text in container["args"])
        if name in names
    }
