"""Edit YAML text in place, so that comments and order survive.

Only the lines of a change are rewritten, at the places of PyYAML's nodes. Text that cannot be edited
like this, such as text with anchors, must be rewritten by the caller.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

import yaml

from dynamo_graphs.output import write_yaml
from dynamo_operator.documents import ShallowLoader, documents
from kube_runtime.types.meta import Object

_DASH = re.compile(r" *- +")


def edited(text: str, before: Object, after: Object) -> str | None:
    """Change the value of a text from `before` to `after`; None if the text must be rewritten.

    Raises: ConfigErrors, if the text is not YAML.
    """
    if is_same(before, after):
        return text
    root = yaml.compose(text, Loader=ShallowLoader)
    if root is None or not _is_tree(root, set()):
        return None
    try:
        changes = sorted(_value_edits(text, root, before, after), key=lambda edit: edit.start)
    except _NotEditableError:
        return None
    parts, done = list[str](), 0
    for edit in changes:
        if edit.start < done:
            return None
        ends_line = not text[: edit.start] or text[edit.start - 1] == "\n" or not edit.is_line
        parts += (text[done : edit.start], "" if ends_line else "\n", edit.text)
        done = edit.end
    result = "".join((*parts, text[done:]))
    values = [document.value for document in documents("edited", result)]
    return result if len(values) == 1 and is_same(values[0], after) else None


def is_same(first: object, second: object) -> bool:
    """Whether two JSON values are the same; unlike `==` it distinguishes True, 1 and 1.0."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(is_same(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_same, first, second))
    return type(first) is type(second) and first == second


@dataclass(frozen=True, slots=True)
class _Edit:
    """Text in place of the characters from `start` to `end`; whole lines if `is_line`."""

    start: int
    end: int
    text: str
    is_line: bool = False


class _NotEditableError(Exception):
    """The value must be rewritten together with its parent."""


def _is_tree(node: yaml.Node, seen: set[int]) -> bool:
    """Whether the document has neither aliases nor merge keys."""
    if id(node) in seen:
        return False
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        is_merged = any(key.value == "<<" for key, _ in node.value)
        return not is_merged and all(_is_tree(child, seen) for pair in node.value for child in pair)
    return not isinstance(node, yaml.SequenceNode) or all(_is_tree(child, seen) for child in node.value)


def _value_edits(text: str, node: yaml.Node, before: object, after: object) -> Iterator[_Edit]:
    is_block = isinstance(node, yaml.CollectionNode) and not node.flow_style
    if is_block and isinstance(before, dict) and isinstance(after, dict) and after:
        yield from _mapping_edits(text, node, before, after)
    elif is_block and isinstance(before, list) and isinstance(after, list) and after:
        yield from _sequence_edits(text, node, before, after)
    else:
        raise _NotEditableError


def _mapping_edits(text: str, node: yaml.Node, before: Object, after: Object) -> Iterator[_Edit]:
    indent = " " * node.start_mark.column
    if len(node.value) != len(before):
        raise _NotEditableError  # different spellings of one key
    for (key_node, value_node), key in zip(node.value, before, strict=True):
        start = _line_start(text, key_node.start_mark.index)
        if key not in after:
            if text[start : key_node.start_mark.index].strip():
                raise _NotEditableError  # the first key of an item, after its dash
            yield _Edit(start, _next_line(text, value_node), "")
        elif not is_same(before[key], after[key]):
            try:
                inner = list(_value_edits(text, value_node, before[key], after[key]))
            except _NotEditableError:
                lines = _lines({key: after[key]}, indent)
                whole = "\n".join(lines).lstrip(" ")
                inner = [_Edit(key_node.start_mark.index, _end(text, value_node), whole)]
            yield from inner
    added = {key: value for key, value in after.items() if key not in before}
    if added:
        at = _next_line(text, node.value[-1][1])
        yield _Edit(at, at, "\n".join(_lines(added, indent)) + "\n", is_line=True)


def _sequence_edits(text: str, node: yaml.Node, before: list[object], after: list[object]) -> Iterator[_Edit]:
    shorter = min(len(before), len(after))
    first = next((at for at in range(shorter) if not is_same(before[at], after[at])), shorter)
    last = next(
        (at for at in range(shorter - first) if not is_same(before[-1 - at], after[-1 - at])), shorter - first
    )
    old, new = range(first, len(before) - last), after[first : len(after) - last]
    starts = [_item_start(text, item) for item in node.value]
    indent = " " * (starts[0] - _line_start(text, starts[0]))
    for at, value in zip(old, new, strict=False):
        item = node.value[at]
        try:
            yield from list(_value_edits(text, item, before[at], value))
        except _NotEditableError:
            whole = "\n".join(_lines([value], indent)).lstrip(" ")
            yield _Edit(starts[at], _end(text, item), whole)
    for at in old[len(new) :]:
        yield _Edit(_line_start(text, starts[at]), _next_line(text, node.value[at]), "")
    if len(new) > len(old):
        place = old.stop
        at = _next_line(text, node.value[place - 1]) if place else _line_start(text, starts[0])
        yield _Edit(at, at, "\n".join(_lines(new[len(old) :], indent)) + "\n", is_line=True)


def _item_start(text: str, item: yaml.Node) -> int:
    start = _line_start(text, item.start_mark.index)
    before = text[start : item.start_mark.index]
    if not _DASH.fullmatch(before):
        raise _NotEditableError
    return start + before.index("-")


def _end(text: str, node: yaml.Node) -> int:
    """The end of a value; of a block collection that of its last value, before trailing comments."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1] if isinstance(node, yaml.SequenceNode) else node.value[-1][1]
    end: int = node.end_mark.index
    while end > node.start_mark.index and text[end - 1].isspace():
        end -= 1
    return end


def _next_line(text: str, node: yaml.Node) -> int:
    newline = text.find("\n", _end(text, node))
    return len(text) if newline < 0 else newline + 1


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _lines(value: object, indent: str) -> list[str]:
    stream = StringIO()
    write_yaml([{"value": value}], stream)
    lines = stream.getvalue().splitlines()[2:]
    cut = "  " if isinstance(value, dict) else ""
    return [f"{indent}{line.removeprefix(cut)}".rstrip() for line in lines]
