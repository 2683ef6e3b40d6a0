"""The settings of an operator as the charts install it by default, for commands without a cluster."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dynamo_graphs.settings import RenderSettings, fields
from dynamo_operator.cli.configuration import read_settings
from dynamoctl.installation.manifests import Choices, manifests

NAMESPACE = "dynamo-system"
"""The namespace that the installation guide takes."""


def rendering_settings(file: Path | None) -> RenderSettings:
    """The settings that rendering needs: those of the file, else those of a default installation.

    Raises: ExceptionGroup of ConfigError.
    """
    if file is not None:
        return read_settings({}, file=file, environment=os.environ).render
    found = read_settings(installed_flags(), environment=os.environ).render
    # Which gateways the administrator of a cluster allows is not known here.
    return msgspec.structs.replace(found, allowed_gateways="*")


def installed_flags() -> Mapping[str, str]:
    """The flags of the packaged Deployment that say how to render, by name."""
    known = {
        name for field in fields() if field.path[0] == "render" for name in field.setting.flags
    }
    return {
        name: value
        for each in manifests(Choices(NAMESPACE, is_operator_only=True))
        if each["kind"] == "Deployment"
        for container in each["spec"]["template"]["spec"]["containers"]
        for name, _, value in (text.lstrip("-").partition("=") for text in container["args"])
        if name in known
    }
