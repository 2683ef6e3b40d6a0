"""Write YAML and JSON as kubectl does."""

import sys
from collections.abc import Iterable
from functools import cache
from typing import Any, TextIO

import msgspec
import yaml

from dynamo_operator.documents import scalar
from kube_runtime.types.meta import Object

_AMBIGUOUS = "ambiguous"
_STRING = "tag:yaml.org,2002:str"


# A string that YAML 1.1, YAML 1.2 or kubectl would read as another type is quoted: `yes`, `1e3`,
# `0o17`, `1:30`, `2020-01-01`.
class _Dumper(yaml.CSafeDumper):
    """PyYAML's C emitter without aliases, and with the quotes that kubectl needs."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the signature is PyYAML's
        return True

    def resolve(self, kind: object, value: object, implicit: Any) -> object:
        tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        is_string = kind is yaml.ScalarNode and implicit[0] and tag == _STRING
        return _AMBIGUOUS if is_string and not _is_read_as_text(value) else tag


@cache
def _is_read_as_text(value: str) -> bool:
    """Cached, since documents repeat few words."""
    return isinstance(scalar(value), str)


def _string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Represent text of several lines as a block, which is readable."""
    style = "|" if "\n" in text.strip("\n") and not text[:1].isspace() else None
    return dumper.represent_scalar(_STRING, text, style=style)


_Dumper.add_representer(str, _string)


def write_yaml(objects: Iterable[Object], stream: TextIO) -> None:
    """Write documents, separated by `---`."""
    yaml.dump_all(
        objects,
        stream,
        Dumper=_Dumper,
        explicit_start=True,
        sort_keys=False,
        allow_unicode=True,
        width=sys.maxsize >> 33,
    )


def write_json(objects: Iterable[Object], stream: TextIO) -> None:
    """Write one List, as kubectl does."""
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    stream.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
