"""Read YAML and JSON as kubectl does, with the place of every value.

`yes`, `0777`, `1:30` or `2020-01-01` must mean the same as to `kubectl apply -f`. So PyYAML's C parser
only builds nodes, and this module resolves their values. In one point it is stricter: a duplicate key is
an error, while kubectl keeps the last one.

Source: go.yaml.in/yaml/v2 v2.4 (tags of plain scalars), sigs.k8s.io/yaml (keys), kubectl 1.32.
"""

import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import yaml

from kube_runtime.errors import ConfigError, ConfigErrors
from kube_runtime.types.meta import Object

_WORDS: Object = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MOST_VALUES = 1_000_000
"""Values of a text. Aliases of aliases grow exponentially; the largest object has fewer values."""
VALUES_LIMIT = 200_000
"""Values of a text that the operator reads for a tenant: at most 100 MB of nodes."""
_LONGEST = 100
"""Characters of an integer; Python rejects very long ones."""
_LARGEST = 2**64 - 1
_SMALLEST = -(2**63)
_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"
_STEP = re.compile(r'\.*+(?:\["(.*?)"\]|\[(?!")([^]]*+)\]|([^.[]++))', re.DOTALL)
_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_MERGE_KEY = "<<"
_SEPARATOR = re.compile(r"^(?:---|\.\.\.)(?:[ \t]*\n|(?=\s)|\Z)", re.MULTILINE)
LARGE_TEXT = 64 * 1024
"""Characters of YAML that may be read in an event loop: about 0.1 s. `ONE_AT_A_TIME` reads more of them."""
ONE_AT_A_TIME = ThreadPoolExecutor(1, "yaml")
"""Parses large texts. More threads would take as long, and the memory of as many texts."""
DEPTH_LIMIT = 100
"""Levels of lists and mappings. Objects of Kubernetes have less than thirty."""


def is_deep(value: object) -> bool:
    """Whether a value has more levels than `ShallowLoader` accepts."""
    level = [value]
    for _ in range(DEPTH_LIMIT):
        inside = [child for child in level if isinstance(child, (dict, list))]
        level = [
            child for parent in inside for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True


class ShallowLoader(yaml.CSafeLoader):
    """PyYAML's safe reader, which raises `yaml.MarkedYAMLError` for text with too many levels or values.

    PyYAML's C reader recurses once for each level: a text of some thousand brackets would end the process. A
    value of two characters becomes a node of 260 bytes, so values are counted before they are nodes.
    Read text from untrusted sources with this one.
    """

    def __init__(self, stream: Any, most_values: int = _MOST_VALUES) -> None:
        super().__init__(stream)
        self._most, self._values, self._depth = most_values, 0, 0

    # The reader calls these two before and after the content of each value.
    def descend_resolver(self, current_node: Any, current_index: object) -> None:
        self._depth += 1
        self._values += current_node is None or current_index is not None  # a key counts with its value
        problem = f"nested deeper than {DEPTH_LIMIT} levels" if self._depth > DEPTH_LIMIT else ""
        problem = f"more than {self._most} values" if self._values > self._most else problem
        if problem:
            mark = current_node.start_mark if current_node is not None else None
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)

    def ascend_resolver(self) -> None:
        self._depth -= 1


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file. `node` is its root, for the places of its values, `text` all that it has."""

    source: str
    value: Any
    node: yaml.Node
    text: str = ""

    def place(self, path: str) -> str:
        """`FILE:LINE:COLUMN` of a field, or of its deepest existing parent."""
        return _place(self.source, _node_at(self.node, path))


def documents(source: str, text: str, most_values: int = _MOST_VALUES) -> list[Document]:
    """Read the documents of a text, without empty ones. `source` names the text in messages.

    Raises: ConfigErrors, one for each mistake.
    """
    reading = _Reading(source, most_values)
    roots = list(_roots(source, text, most_values))
    texts = _texts(text, roots)
    read = [Document(source, reading.value(node), node, own) for node, own in zip(roots, texts, strict=True)]
    if reading.mistakes:
        raise ConfigErrors(source, reading.mistakes)
    return [document for document in read if document.value is not None]


def scalar(text: str) -> object:
    """Resolve a plain scalar to None, a boolean, a number, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] not in {*".+-0123456789"}:
        return text
    digits = text if text[:1] == "." else text.replace("_", "")
    if len(digits) <= _LONGEST and _INTEGER.fullmatch(digits):
        unsigned = digits.lstrip("+-")
        is_old_octal = unsigned[0] == "0" and unsigned.isdecimal() and len(unsigned) > 1
        integer = int(unsigned, 8 if is_old_octal else 0) * (-1 if digits.startswith("-") else 1)
        if _SMALLEST <= integer <= _LARGEST:
            return integer
    number = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    return text if math.isinf(number) else number


class _NodeLoader(ShallowLoader):
    """PyYAML's C parser, which tags plain scalars as `plain`, so that `_Reading` resolves their type."""

    def resolve(self, kind: object, value: object, implicit: Any) -> object:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


def _roots(source: str, text: str, most_values: int) -> Iterator[yaml.Node]:
    """Parse the root nodes. JSON escapes characters beyond 16 bits in two parts, which YAML cannot."""
    if text.lstrip()[:1] in {"{", "["}:
        text = _PAIR.sub(lambda pair: bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be"), text)
    try:
        loader = _NodeLoader(text, most_values)
        while loader.check_node() and (node := loader.get_node()):
            yield node
    except yaml.YAMLError as error:
        place, problem = source, str(error)
        if isinstance(error, yaml.MarkedYAMLError):
            mark = error.problem_mark or error.context_mark
            place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
            problem = " ".join(part for part in (error.context, error.problem) if part)
        raise ConfigErrors(source, [ConfigError(place, f"unreadable YAML: {problem}")]) from error


def _texts(text: str, roots: list[yaml.Node]) -> Iterator[str]:
    """The text of each document without the lines between them; comments before the first are its own."""
    done = 0
    for root in roots:
        following = _SEPARATOR.search(text, max(root.end_mark.index - 1, done))
        end = following.start() if following else len(text)
        yield _SEPARATOR.sub("", text[done:end])
        done = end


class _Reading:
    """Convert the nodes of a text to values, and collect its mistakes."""

    def __init__(self, source: str, most_values: int) -> None:
        self.source = source
        self.mistakes: list[ConfigError] = []
        self._most, self._values = most_values, 0
        self._open: list[yaml.Node] = []  # the collections around the present value

    def value(self, node: yaml.Node) -> Any:
        self._values += 1
        if self._values > self._most:
            message = f"more than {self._most} values, counted wherever an alias repeats them"
            raise ConfigErrors(self.source, [ConfigError(self.source, message)])
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if any(node is ancestor for ancestor in self._open):
            return self._mistake(node, "an alias refers to a value that contains it")
        if len(self._open) >= DEPTH_LIMIT:
            return self._mistake(node, f"its aliases nest deeper than {DEPTH_LIMIT} levels")
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node)
            return [self.value(item) for item in node.value]
        finally:
            self._open.pop()

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        tag = node.tag.removeprefix(_TAG)
        if tag == "str":
            return text
        value = scalar(text)
        if tag != _PLAIN and not isinstance(value, _TYPES.get(tag, ())):
            return self._mistake(node, f"cannot read {text!r} as {node.tag.replace(_TAG, '!!')}")
        if isinstance(value, float) and not math.isfinite(value):
            return self._mistake(node, f"invalid number {text} (outside the range of Kubernetes)")
        return value

    def _mapping(self, node: yaml.MappingNode) -> Object:
        merged: Object = {}
        own: Object = {}
        for key_node, value_node in node.value:
            is_scalar = isinstance(key_node, yaml.ScalarNode)
            if is_scalar and key_node.value == _MERGE_KEY and key_node.tag == _PLAIN:
                for name, child in self._merged(value_node).items():  # not a copy for each of many `<<`
                    merged.setdefault(name, child)
                continue
            key = self._key(key_node)
            if key in own:
                self._mistake(key_node, f"duplicate key {key!r}")
            own[key] = self.value(value_node)
        return {**merged, **own}

    def _merged(self, node: yaml.Node) -> Object:
        """The fields of a `<<` key: of a mapping, or of a list of mappings, of which the first wins."""
        value = self.value(node)
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            self._mistake(node, "`<<` expects a mapping or a list of mappings")
            return {}
        return {key: child for part in reversed(parts) for key, child in part.items()}

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            self._mistake(node, "expected a string as key")
            return ""
        value = self._scalar(node)
        if value is None:
            self._mistake(node, "a key must not be null")
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _mistake(self, node: yaml.Node, message: str) -> None:
        self.mistakes.append(ConfigError(_place(self.source, node), message))


def _place(source: str, node: yaml.Node) -> str:
    mark = node.start_mark
    return f"{source}:{mark.line + 1}:{mark.column + 1}"


def _node_at(node: yaml.Node, path: str) -> yaml.Node:
    """The key or item at a path such as `metadata.labels["a/b"]`, or its deepest existing parent."""
    deepest, inside, at = node, node, 0
    while match := _STEP.match(path, at):  # a search would restart at every bracket
        step, at = match[match.lastindex or 0], match.end()
        if isinstance(inside, yaml.MappingNode):
            pairs = [pair for pair in inside.value if pair[0].value == step]
        elif isinstance(inside, yaml.SequenceNode) and step.isdecimal() and len(step) <= _LONGEST:
            pairs = [(item, item) for item in inside.value[int(step) : int(step) + 1]]
        else:
            break
        if not pairs:
            break
        deepest, inside = pairs[-1]
    return deepest
