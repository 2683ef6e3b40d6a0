"""JSONPath in kubectl's dialect: a template of plain text, and of expressions in braces.

No library on PyPI knows `{range}`, `{end}` and `{"\\n"}`. https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

_Step = Callable[[Sequence[object]], list[object]]
"""From the values that were reached so far to the next ones."""
_Part = Callable[[object], str]
"""A part of a template: its text for a document."""

_FIELD = re.compile(r"(?:\\.|[^\s.,:;()\[\]{}=!<>|&'\"*?@$\\])+")
_TEXT = re.compile(r"\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+'")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_SLICE = re.compile(r"(-?[0-9]*):(-?[0-9]*)(?::([0-9]*))?")
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def template(text: str) -> _Part:
    """The function that prints a document by a template; an expression may lack its braces if it is alone.

    Raises: ValueError for what kubectl's dialect does not have; its message quotes the place. The function
        raises it for an index that an array does not have.
    """
    if "{" not in text and text[:1] in (".", "[", "$", "@"):
        text = f"{{{text}}}"
    return _Parser(text).template()


class _Parser:
    """Reads a template from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def template(self) -> _Part:
        parts = self._parts()
        if self._at < len(self._text):
            raise self._unexpected("{end} without {range}")
        return partial(_joined, parts)

    def _parts(self) -> list[_Part]:
        """The parts up to the end of the template or to an `{end}`, which is not consumed."""
        parts = list[_Part]()
        while self._at < len(self._text):
            literal = self._text[self._at :].partition("{")[0]
            parts += [partial(_constant, literal)] if literal else []
            self._at += len(literal)
            if re.compile(r"\{\s*end\s*\}").match(self._text, self._at):
                break
            if self._take("{"):
                parts += self._action()
        return parts

    def _action(self) -> list[_Part]:
        """What is between braces."""
        parts = list[_Part]()
        self._take_spaces()
        while not self._take("}"):
            if self._at >= len(self._text):
                raise self._unexpected("missing }")
            if self._take_match(re.compile(r"range\s+")):
                steps = self._path()
                self._take_spaces()
                self._expect("}")
                body = self._parts()
                if not self._take_match(re.compile(r"\{\s*end\s*\}")):
                    raise self._unexpected("{range} without {end}")
                parts.append(partial(_repeated, steps, body))
                return parts
            if text := self._take_text():
                parts.append(partial(_constant, _unquoted(text)))
            else:
                parts.append(partial(_printed, self._path()))
            self._take_spaces()
        return parts

    def _path(self) -> list[_Step]:
        """The steps of an expression such as `.items[*].metadata.name`."""
        steps, start = list[_Step](), self._at
        has_root = bool(self._take("$") or self._take("@"))
        while True:
            if self._take(".."):
                steps.append(_descendants)
                if self._peek() not in ("[", ""):
                    steps.append(self._field())
            elif self._take("."):
                if self._peek() != "[":
                    steps.append(self._field())
            elif self._take("["):
                steps.append(self._bracket())
            else:
                break
        if not steps and not has_root and self._text[start : start + 1] != "." and self._at == start:
            raise self._unexpected("expected an expression such as .metadata.name")
        return steps

    def _field(self) -> _Step:
        if self._take("*"):
            return _children
        name = self._take_match(_FIELD)
        if not name:
            if self._peek() in ("}", " ", ""):  # `{.}` is the whole document
                return list
            raise self._unexpected("expected the name of a field")
        return partial(_named, re.sub(r"\\(.)", r"\1", name))

    def _bracket(self) -> _Step:
        self._take_spaces()
        if self._take("?"):
            step = self._filter()
        elif self._take("*"):
            step = _children
        else:
            steps = [self._element()]
            while self._take_match(re.compile(r"\s*,\s*")):
                steps.append(self._element())
            step = steps[0] if len(steps) == 1 else partial(_union, steps)
        self._take_spaces()
        self._expect("]")
        return step

    def _element(self) -> _Step:
        if text := self._take_text():
            path = _Parser(f".{text[1:-1]}")  # as in kubectl, 'metadata.name' is a path
            steps = path._path()
            return partial(_followed, steps)
        if bounds := _SLICE.match(self._text, self._at):
            self._at = bounds.end()
            start, stop, step = (int(bound) if bound else None for bound in bounds.groups())
            return partial(_sliced, slice(start, stop, step or None))
        if number := self._take_match(re.compile("-?[0-9]+")):
            return partial(_indexed, int(number))
        raise self._unexpected("expected *, an index, a slice, a 'name' or ?(…)")

    def _filter(self) -> _Step:
        self._expect("(")
        left = self._operand()
        self._take_spaces()
        comparison = self._take_match(_COMPARISON)
        right = self._operand() if comparison else None
        self._take_spaces()
        self._expect(")")
        return partial(_filtered, left, comparison, right)

    def _operand(self) -> _Step:
        """One side of a comparison: what it yields for an element."""
        self._take_spaces()
        if text := self._take_text():
            return partial(_value, _unquoted(text))
        if number := self._take_match(_NUMBER):
            return partial(_value, float(number) if "." in number else int(number))
        if word := self._take_match(re.compile(r"(true|false)\b")):
            return partial(_value, word == "true")
        return partial(_followed, self._path())

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        is_next = self._text.startswith(text, self._at)
        self._at += len(text) if is_next else 0
        return is_next

    def _take_match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return match[0] if match else ""

    def _take_text(self) -> str:
        """A text in quotes, with them."""
        match = _TEXT.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return match[0] if match else ""

    def _take_spaces(self) -> None:
        self._take_match(re.compile(r"\s*"))

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(f"expected {text}")

    def _unexpected(self, problem: str) -> ValueError:
        rest = self._text[self._at :] or "the end"
        return ValueError(f'{problem} at "{rest}", for example jsonpath={{.items[*].metadata.name}}')


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])


def _joined(parts: Sequence[_Part], document: object) -> str:
    return "".join(part(document) for part in parts)


def _constant(text: str, _document: object) -> str:
    return text


def _printed(steps: Sequence[_Step], document: object) -> str:
    return " ".join(map(_shown, _followed(steps, [document])))


def _repeated(steps: Sequence[_Step], body: Sequence[_Part], document: object) -> str:
    return "".join(_joined(body, value) for value in _followed(steps, [document]))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value, order="sorted").decode()


def _followed(steps: Sequence[_Step], values: Sequence[object]) -> list[object]:
    for step in steps:
        values = step(values)
    return [*values]


def _value(constant: object, _values: Sequence[object]) -> list[object]:
    return [constant]


def _named(name: str, values: Sequence[object]) -> list[object]:
    return [value[name] for value in values if isinstance(value, dict) and name in value]


def _children(values: Sequence[object]) -> list[object]:
    return [child for value in values for child in _inside(value)]


def _inside(value: object) -> Sequence[object]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else ()


def _descendants(values: Sequence[object]) -> list[object]:
    """The values and all below them, each before what is below it."""
    reached, left = list[object](), [*reversed(values)]
    while left:
        value = left.pop()
        reached.append(value)
        left += reversed(_inside(value))
    return reached


def _union(steps: Sequence[_Step], values: Sequence[object]) -> list[object]:
    return [value for step in steps for value in step(values)]


def _indexed(index: int, values: Sequence[object]) -> list[object]:
    reached = list[object]()
    for value in values:
        if isinstance(value, list):
            if not -len(value) <= index < len(value):
                raise ValueError(f"array index out of bounds: index {index}, length {len(value)}")
            reached.append(value[index])
    return reached


def _sliced(bounds: slice, values: Sequence[object]) -> list[object]:
    return [item for value in values if isinstance(value, list) for item in value[bounds]]


def _filtered(left: _Step, comparison: str, right: _Step | None, values: Sequence[object]) -> list[object]:
    return [
        element
        for value in values
        if isinstance(value, list)
        for element in value
        if _is_chosen(left([element]), comparison, right([element]) if right else [])
    ]


def _is_chosen(left: Sequence[object], comparison: str, right: Sequence[object]) -> bool:
    if not comparison or not left:
        return bool(left)
    try:
        return bool(right) and _OPERATORS[comparison](left[0], right[0])
    except TypeError:  # a text and a number
        return False
