"""The settings of an operator as the charts install it by default, for commands without a cluster."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dynamo_graphs.settings import RenderSettings, fields
from dynamo_operator.cli.configuration import read_settings
from dynamoctl.installation.manifests import operator_pod


def render_settings(file: Path | None) -> RenderSettings:
    """The settings that rendering needs: those of the file, else those of a default installation.

    Raises: ExceptionGroup of ConfigError.
    """
    if file is not None:
        return read_settings({}, file=file, environment=os.environ).render
    settings = read_settings(installed_flags(), environment=os.environ).render
    # Which gateways the administrator of a cluster allows is not known here.
    return msgspec.structs.replace(settings, allowed_gateways="*")


def installed_flags() -> Mapping[str, str]:
    """The flags of the packaged Deployment that say how to render, by name."""
    names = {
        name for field in fields() if field.path[0] == "render" for name in field.setting.flags
    }
    return {
        name: value
        for container in operator_pod()["containers"]
        for name, _, value in (text.lstrip("-").partition("=") for text in container["args"])
        if name in names
    }
