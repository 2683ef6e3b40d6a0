"""YAML of a converted object, with the comments of the text that it was converted from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Final

import yaml

from dynamo_graphs.output import write_yaml
from dynamo_graphs.versions import LATER, paths_of
from dynamo_graphs.yaml_editor import is_same
from dynamo_operator.documents import ShallowLoader, documents
from dynamo_operator.shared.written import Written
from kube_runtime.types.meta import Object

_TRAILING: Final = re.compile(r"[\s,\]}]*\s(#.*)")

_KEY: Final = re.compile(r"\[([^][\d][^][]*+)\]")


def converted_text(text: str, before: Object, after: Object) -> str:
    """The YAML of `after`, in which each comment of the text is at the field that it was about.

    A comment about a field without a counterpart is at the nearest field around it. JSON has no comments.
    """
    stream = StringIO()
    write_yaml([after], stream)
    plain = stream.getvalue().removeprefix("---\n")
    source, target = (yaml.compose(one, Loader=ShallowLoader) for one in (text, plain))
    if source is None or target is None or "#" not in text:
        return plain
    counterparts = _counterparts(before, after)
    whole = _with_comments(plain, target, _comments(text, source), counterparts)
    values = [document.value for document in documents("converted", whole)]
    return whole if len(values) == 1 and is_same(values[0], after) else plain


@dataclass(frozen=True, slots=True)
class _Comment:
    """A comment, and the path of the field that it is about; "" at the end of the text."""

    path: str
    text: str
    is_trailing: bool


def _counterparts(before: Object, after: Object) -> dict[str, str]:
    """For each path of `before`, the path of the same field in `after`."""
    earlier, later = (after, before) if before["apiVersion"] == LATER else (before, after)
    written = Written(later, earlier)
    pairs = [(path, _KEY.sub(r".\1", written.path(path))) for path in paths_of(earlier)]
    if before is earlier:
        return dict(pairs)
    found: dict[str, str] = {}
    for path, later_path in pairs:
        found.setdefault(later_path, path)
    return found


def _lines(node: yaml.Node, path: str = "") -> Iterator[tuple[str, int]]:
    """Each path with the line on which it begins, in the order of the text."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = f"{path}.{key.value}".lstrip(".")
            yield inner, key.start_mark.line
            yield from _lines(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield f"{path}[{index}]", item.start_mark.line
            yield from _lines(item, f"{path}[{index}]")


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(key)
            yield from _scalars(value)
    else:
        for item in node.value:
            yield from _scalars(item)


def _comments(text: str, root: yaml.Node) -> Iterator[_Comment]:
    inside: set[int] = set()  # lines on which a scalar begins or continues that began on an earlier line
    ends: dict[int, int] = {}  # by line, the column after its last scalar
    for scalar in _scalars(root):
        start, end = scalar.start_mark, scalar.end_mark
        inside.update(range(start.line + 1, end.line + (end.column > 0)))
        ends[end.line] = max(ends.get(end.line, 0), end.column)
        if scalar.style in ("|", ">"):
            ends.pop(start.line, None)
    paths = list(_lines(root))
    by_line = {line: path for path, line in paths}  # the deepest
    following = iter(paths)
    path, place = next(following, ("", -1))
    for number, content in enumerate(text.splitlines()):
        while path and place < number:
            path, place = next(following, ("", -1))
        if number not in inside and content.lstrip().startswith("#"):
            yield _Comment(path, content.strip(), is_trailing=False)
        elif number in by_line and number in ends:
            match = _TRAILING.fullmatch(content, ends[number]) or _TRAILING.fullmatch(
                f" {content[ends[number] :]}"
            )
            if match:
                yield _Comment(by_line[number], match[1].strip(), is_trailing=True)


def _with_comments(
    text: str, root: yaml.Node, comments: Iterator[_Comment], counterparts: Mapping[str, str]
) -> str:
    places: dict[str, int] = {}
    for path, line in _lines(root):
        places.setdefault(path, line)
    lines = text.splitlines()
    above: dict[int, list[str]] = {}
    after: dict[int, str] = {}
    for comment in comments:
        path = comment.path
        exact = counterparts.get(path, "")
        at = places.get(exact)
        while path and at is None:
            path = _parent(path)
            at = places.get(counterparts.get(path, ""))
        if at is None:
            at = len(lines) if not comment.path else 0
        elif comment.is_trailing and places.get(exact) == at and at not in after:
            after[at] = comment.text
            continue
        above.setdefault(at, []).append(comment.text)
    result: list[str] = []
    for number, content in enumerate((*lines, "")):
        indent = content[: len(content) - len(content.lstrip())]
        result += (f"{indent}{comment}" for comment in above.get(number, ()))
        result.append(f"{content}  {after[number]}" if number in after else content)
    return "\n".join(result)


def _parent(path: str) -> str:
    return path[: max(path.rfind("."), path.rfind("["), 0)]
