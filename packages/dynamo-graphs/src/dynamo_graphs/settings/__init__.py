"""Every setting of the operator, in one frozen struct that is read once at start.

Each field declares its help text, its flags and its environment variable; its key in the settings file
follows from its name (`SettingField.key`). `--help`, the settings file and `docs/settings.md` are
generated from here.
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple, get_args, get_type_hints

import msgspec

from dynamo_graphs.settings.declare import Section, Setting
from dynamo_graphs.settings.process import (
    HealthSettings,
    LeaderElectionSettings,
    LogFormat,
    LoggingSettings,
    MetricsSettings,
    ModelSettings,
    NamespaceScopeSettings,
    TimeFormat,
    WebhookSettings,
)
from dynamo_graphs.settings.rendering import RenderSettings, installed_settings

__all__ = [
    "HealthSettings",
    "LeaderElectionSettings",
    "LogFormat",
    "LoggingSettings",
    "MetricsSettings",
    "ModelSettings",
    "NamespaceScopeSettings",
    "RenderSettings",
    "Section",
    "Setting",
    "SettingField",
    "Settings",
    "TimeFormat",
    "WebhookSettings",
    "fields",
    "installed_settings",
]


class Settings(Section, frozen=True, kw_only=True):
    """All settings of the operator."""

    render: RenderSettings = RenderSettings()
    metrics: MetricsSettings = MetricsSettings()
    health: HealthSettings = HealthSettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    namespace_scope: NamespaceScopeSettings = NamespaceScopeSettings()
    webhooks: WebhookSettings = WebhookSettings()
    models: ModelSettings = ModelSettings()
    logging: LoggingSettings = LoggingSettings()
    legacy_kinds: Annotated[
        bool,
        Setting(
            "Reconcile the kinds of the older generation: DynamoDeployment, DynamoNimDeployment, "
            "DynamoNimRequest.",
            ("enable-legacy-kinds",),
            environment="DYN_LEGACY_KINDS",
        ),
    ] = False
    kubeconfig: Annotated[
        str,
        Setting(
            "Use this kubeconfig file (default: KUBECONFIG, else the pod's ServiceAccount, else "
            "`~/.kube/config`).",
            ("kubeconfig",),
        ),
    ] = ""
    resync_period_seconds: Annotated[
        float,
        Setting(
            "Mean resync period.",
            ("resync-period",),
        ),
    ] = 600.0
    operator_version: Annotated[
        str,
        Setting(
            "Report this operator version (default: the package's).",
            ("operator-version",),
        ),
    ] = ""


class SettingField(NamedTuple):
    """One setting: its path in `Settings`, its type and its default."""

    path: tuple[str, ...]
    type_: object
    default: object
    setting: Setting

    @property
    def is_duration(self) -> bool:
        """Whether the value is written as a Go duration such as `1h30m`."""
        return self.path[-1].endswith("_seconds")

    @property
    def key(self) -> str:
        """The key in the settings file, such as `leaderElection.leaseDuration`.

        Settings of rendering are at the top level, and durations are written with a unit.
        """
        parts = self.path[1:] if self.path[0] == "render" else self.path
        return ".".join(_camel(part.removesuffix("_seconds")) for part in parts)


def fields(section: type[Section] = Settings) -> Iterator[SettingField]:
    """Yield every setting, in the order of the structs."""
    hints = get_type_hints(section, include_extras=True)
    for info in msgspec.structs.fields(section):
        hint = hints[info.name]
        if isinstance(hint, type) and issubclass(hint, Section):
            yield from (field._replace(path=(info.name, *field.path)) for field in fields(hint))
        else:
            type_, setting = get_args(hint)
            yield SettingField((info.name,), type_, info.default, setting)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
