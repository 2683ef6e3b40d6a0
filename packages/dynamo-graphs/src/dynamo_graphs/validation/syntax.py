"""The syntax of names, labels and annotations in Kubernetes, and suggestions for misspelled words."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from dynamo_graphs.api.names import LABEL_LIMIT, SUBDOMAIN_LIMIT
from dynamo_graphs.validation import Problem

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(rf"({_DNS_LABEL.pattern})(\.{_DNS_LABEL.pattern})*", re.ASCII)
_PLAIN = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)

_LEAST_LIKENESS: Final = 0.6
"""Of 1 for equal texts. Source: the default of `difflib.get_close_matches`."""
LONGEST_SHOWN: Final = 60
"""Most characters of a user's text in a message."""
_MOST_OPTIONS: Final = 64
_MOST_COMPARED: Final = 50_000
"""Pairs of characters: about 25 ms in the worst case."""


def is_dns_label(text: str) -> bool:
    """Whether the text may name a container or a volume."""
    return len(text) <= LABEL_LIMIT and _DNS_LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether the text may name a Secret, a PVC or a ServiceAccount."""
    return len(text) <= SUBDOMAIN_LIMIT and _SUBDOMAIN.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Whether the text may be the value of a label."""
    return len(text) <= LABEL_LIMIT and _PLAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Whether the text may be the key of a label or annotation, or the name of a resource."""
    prefix, slash, name = text.rpartition("/")
    return bool(name) and is_label_value(name) and (not slash or is_subdomain(prefix))


def name_problems(text: str, path: str, kind: str) -> Iterator[Problem]:
    """Report a text that cannot name an object."""
    if not is_subdomain(text):
        yield Problem(
            path,
            f"invalid name {shown(text)} of {kind} (expected at most {SUBDOMAIN_LIMIT} lower-case "
            'letters, digits, "-" and ".", with a letter or digit at both ends)',
        )


def label_problems(labels: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Report invalid keys and values of labels."""
    yield from annotation_problems(labels, path)
    for key, value in sorted(labels.items()):
        if not is_label_value(value):
            yield Problem(f"{path}[{key}]", not_a_label_value(value))


def annotation_problems(annotations: Iterable[str], path: str) -> Iterator[Problem]:
    """Report invalid keys of labels or annotations."""
    for key in sorted(annotations):
        if not is_qualified_name(key) or key.rpartition("/")[0] != key.rpartition("/")[0].lower():
            yield Problem(
                f"{path}[{key}]",
                f'invalid key "{key}" (expected an optional domain and "/", then at most '
                f'{LABEL_LIMIT} letters, digits, "-", "_" and "." with a letter or digit at both '
                "ends)",
            )


def not_a_label_value(text: str) -> str:
    """The message for a text that cannot be a label's value."""
    return (
        f'invalid label value "{text}" (expected at most {LABEL_LIMIT} letters, digits, "-", "_" '
        'and "." with a letter or digit at both ends)'
    )


def shown(value: object) -> str:
    """The value in quotes, cut after `LONGEST_SHOWN` characters."""
    text = str(value)
    return f'"{text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"}"'


class Suggestions:
    """Suggests the intended spelling of misspelled words in one document, with bounded work.

    Comparing two texts takes time up to the product of their lengths, and users choose both. So only short
    texts are compared, with few options, and once a document has used up `_MOST_COMPARED`, its further
    mistakes get no suggestion.
    """

    def __init__(self) -> None:
        self._left = _MOST_COMPARED

    def nearest(self, text: object, options: Iterable[str]) -> str:
        """`; did you mean "…"?` with the option most like the text, or "" if none is."""
        if not isinstance(text, str) or len(text) > LABEL_LIMIT:
            return ""
        few = islice(options, _MOST_OPTIONS)
        by_folded = {option.lower(): option for option in few if len(option) <= LABEL_LIMIT}
        matcher = SequenceMatcher(b=text.lower())
        best = (_LEAST_LIKENESS, "")
        for option in by_folded:
            self._left -= len(text) + len(option)
            matcher.set_seq1(option)
            if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < _LEAST_LIKENESS:
                continue
            self._left -= len(text) * len(option)
            if self._left < 0:
                return ""
            best = max(best, (matcher.ratio(), option))
        return f'; did you mean "{by_folded[best[1]]}"?' if best[1] else ""


def nearest(text: object, options: Iterable[str]) -> str:
    """`; did you mean "…"?` for one text on its own; `Suggestions` is for many of one document."""
    return Suggestions().nearest(text, options)
