"""YAML for golden files: a person reads them, and every byte counts."""

from typing import Any

import yaml


class PlainDumper(yaml.SafeDumper):
    """Without anchors: two objects that share a value are two objects. Scripts line by line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # the shape of a dumper
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if value.count("\n") > 1 else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


PlainDumper.add_representer(str, _text)
