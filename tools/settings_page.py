"""The page docs/settings.md, from the declarations in `dynamo_operator.settings`."""

from pathlib import Path
from typing import Literal, get_args, get_origin

from dynamo_operator.process.flags import default_text, flags
from dynamo_operator.settings import SettingField, fields
from tools.markdown import table

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
HEAD = """\
# Settings

<!-- Written by `make docs`. Change the texts in `dynamo_operator/settings.toml`. -->

The operator reads its settings once, at start. Flags override the settings file, the file overrides
environment variables, and those override the defaults. If any setting is invalid, the operator reports
all errors, one per line, and does not start.

`--config` names the settings file, which is YAML; `dynamoctl render --settings` accepts the same file. A
dot in a key below is one level of nesting. Unknown keys are errors.

```yaml
natsAddress: nats://nats.dynamo-system:4222
groveTerminationDelay: 15m
leaderElection:
  enabled: true
logging:
  format: json
```

Flags follow Go's syntax: `--flag=value`, `--flag value`, `-flag value`; a boolean needs no value; the last
of several wins. Durations are written `90s`, `15m`, `1h30m`.

"""


def page() -> str:
    """The page."""
    lines = [HEAD.rstrip(), "", *_settings(), "", "## Other flags", "", *_other_flags()]
    return "\n".join(lines) + "\n"


def _settings() -> list[str]:
    rows = []
    for field in fields():
        names = ", ".join(f"`--{name}`" for name in field.flags)
        text = field.text
        if field.environment:
            text += f" Environment variable: `{field.environment}`."
        default = f"`{default_text(field)}`" if default_text(field) else ""
        rows.append((f"`{field.key}`", names, _type(field), default, text))
    return table(("key", "flag", "type", "default", "description"), rows)


def _type(field: SettingField) -> str:
    if field.is_duration:
        return "duration"
    if field.type_ is int:
        return "integer"
    if field.type_ is bool:
        return "boolean"
    if get_origin(field.type_) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.type_))
    return "string"


def _other_flags() -> list[str]:
    rows, of_settings = [], {field.flags for field in fields()}
    for flag in flags():
        if flag.names not in of_settings:
            text = f"Accepted, without effect: {flag.unused}." if flag.unused else flag.text
            rows.append((f"`--{flag.name}`", text))
    return table(("flag", "description"), rows)
