"""Texts that are bad for a pattern: made from what the pattern itself looks for, again and again."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]  # there is no public reader of patterns
from typing import Any

import dynamo_graphs
import dynamo_operator
import dynamo_profiler
import dynamoctl
import kube_runtime

_PACKAGES = (kube_runtime, dynamo_graphs, dynamo_operator, dynamo_profiler, dynamoctl)
_NAMES = tuple(package.__name__ for package in _PACKAGES)
_GENERIC = (" ", "/", "a", "1", ".")


def modules() -> Iterator[Any]:
    """Every module but those that are run when they are imported."""
    for package in _PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".__main__") and ".scripts." not in found.name:
                yield importlib.import_module(found.name)


Use = Callable[[str], object]


def patterns() -> dict[str, tuple[re.Pattern[str], list[Use]]]:
    """Every pattern in the product, by where it is, with the ways in which the product uses it.

    Those that modules hold, and those that the code gives to `re` as texts.
    """
    found: dict[str, tuple[re.Pattern[str], list[Use]]] = {}
    for module in modules():
        code = Path(module.__file__).read_text("utf-8")
        for name, value in vars(module).items():
            for pattern in _held(value):
                uses = set(re.findall(rf"\b{re.escape(name)}\.([a-z]+)\b", code)) & _USES.keys()
                where = f"{module.__name__}.{name}"
                found[where] = pattern, [_USES[each](pattern) for each in uses or _USES]
        for line, use, pattern in _written(code):
            if use in _USES:
                found[f"{module.__name__}:{line}"] = pattern, [_USES[use](pattern)]
    return found


def _all(pattern: re.Pattern[str]) -> Use:
    return lambda text: sum(1 for _ in pattern.finditer(text))


_USES: dict[str, Callable[[re.Pattern[str]], Use]] = {
    "fullmatch": lambda pattern: pattern.fullmatch,
    "match": lambda pattern: pattern.match,
    "search": lambda pattern: pattern.search,
    **dict.fromkeys(("sub", "subn", "split", "findall", "finditer"), _all),
}


def _held(value: Any) -> Iterator[re.Pattern[str]]:
    """The patterns in a value of a module."""
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        for each in (*value.keys(), *value.values()):
            yield from _held(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _held(each)
    elif isinstance(value, type) and value.__module__.startswith(_NAMES):
        for each in vars(value).values():
            yield from _held(each) if isinstance(each, re.Pattern) else ()


def _written(code: str) -> Iterator[tuple[int, str, re.Pattern[str]]]:
    """The patterns that code gives to `re` as texts, with the function that gets them."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        place, first = node.func.value, node.args[0] if node.args else None
        is_re = isinstance(place, ast.Name) and place.id == "re"
        if is_re and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield node.lineno, node.func.attr, re.compile(first.value)


def hostile_texts(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    """Texts of about that length: pieces of what the pattern matches, in turns, behind its beginning."""
    words, letters = _pieces(_parser.parse(pattern.pattern, pattern.flags))
    pieces = list(dict.fromkeys((*words[:2], *_GENERIC, *letters)))[:8]
    pumps = [*pieces, *(f"{one}{two}" for one in pieces for two in pieces if one != two)]
    for pump in pumps:
        body = pump * (length // len(pump))
        for prefix in ("", *words[:1]):
            yield f"{prefix}{body}\x00"


def _pieces(parsed: Any) -> tuple[list[str], list[str]]:
    """The words in a parsed pattern, and a letter of each of its sets."""
    words, letters, word = list[str](), list[str](), ""
    for code, argument in parsed:
        if code is _constants.LITERAL:
            word += chr(argument)
            continue
        if word:
            words.append(word)
            word = ""
        if code is _constants.IN:
            letters += _members(argument)
        for inner in _inside(argument):
            more_words, more_letters = _pieces(inner)
            words, letters = words + more_words, letters + more_letters
    return ([*words, word] if word else words), letters


def _inside(argument: Any) -> Iterator[Any]:
    """The parts of a group, a repetition or an alternative."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for each in argument:
            yield from _inside(each)


def _members(choices: Any) -> Iterator[str]:
    """Letters of a set: each that it names, and the ends of its ranges."""
    for code, argument in choices:
        if code is _constants.LITERAL:
            yield chr(argument)
        elif code is _constants.RANGE:
            yield chr(argument[0])
