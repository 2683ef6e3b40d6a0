"""YAML for golden files: readable in a diff, and stable to the byte."""

from typing import Any

import yaml


class PlainDumper(yaml.SafeDumper):
    """Writes shared values twice instead of with anchors, and scripts line by line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # as the base class
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if value.count("\n") > 1 else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


PlainDumper.add_representer(str, _text)
