"""Problems of a spec, as values, and what all rules share: wording, syntax, versions, limits."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from typing import Final

from dynamo_operator.component.api import GROUP, LATER, VERSION
from dynamo_operator.names import LABEL_LIMIT, SUBDOMAIN_LIMIT
from kube_runtime.types.meta import amount


class ProblemKind(StrEnum):
    """The category of a problem."""

    REQUIRED = "required"
    INVALID = "invalid"
    UNKNOWN_FIELD = "unknown_field"
    NOT_SUPPORTED = "not_supported"
    FORBIDDEN = "forbidden"
    DUPLICATE = "duplicate"


_WITH_PATH = ("spec.", "spec: ", "Changing spec.", "service topology is", "source URI must")
"""Beginnings of messages that name their field themselves; users know them from the Go operator."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake in a document. `path` is the field, such as `spec.services.Decode.replicas`."""

    path: str
    message: str
    kind: ProblemKind = ProblemKind.INVALID

    def __str__(self) -> str:
        """One line: the message alone where it names its field itself."""
        if self.message.startswith(_WITH_PATH):
            return self.message
        return f"{self.path}: {self.message}"


def dotted(parts: Iterable[str | int]) -> str:
    """A path as text: keys after dots, even keys that contain dots, and indices in brackets."""
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return "".join(steps).removeprefix(".") or "document"


def service_path(service: str) -> str:
    """The field path of a service in its graph."""
    return f"spec.services.{service}"


def component_path(component: str) -> str:
    """A component's path in messages of the Go operator: `spec.services[w]`, or `spec` outside a graph."""
    _, services, key = component.partition("spec.services.")
    return f"spec.services[{key}]" if services else component


SERVED: Final = f"{GROUP}/{VERSION}"


def is_later_version(document: Mapping[str, object]) -> bool:
    """Whether an object is written in v1beta1."""
    return document.get("apiVersion") == f"{GROUP}/{LATER}"


_HIDDEN: Final = "***"
_LONGEST: Final = 4096

_PASSWORD: Final = re.compile(r"://[^/\s@:]{0,256}:[^\s@]{0,512}@")
_TOKEN: Final = re.compile(r"(https?)://[^/\s@]{1,512}@", re.IGNORECASE)
_QUERY: Final = re.compile(r"(://[^\s?]{1,1024})\?[^\s'\"]+")
_BEARER: Final = re.compile(r"\b(bearer|authorization: basic)\s+[^\s'\"]+", re.IGNORECASE)
_KNOWN: Final = re.compile(r"\bhf_[A-Za-z0-9]{8,}")
"""Tokens of the Hugging Face Hub. Source: its documentation."""


# Any user may have written the text, in any form and length. What looks like a credential is
# removed, even if it is none; the time is linear in the text's length.
def without_credentials(text: str) -> str:
    """At most 4096 characters of the text, with `***` for what may be a credential."""
    text = _PASSWORD.sub(f"://{_HIDDEN}@", text[:_LONGEST])
    text = _TOKEN.sub(rf"\1://{_HIDDEN}@", text)
    text = _QUERY.sub(rf"\1?{_HIDDEN}", text)
    text = _BEARER.sub(rf"\1 {_HIDDEN}", text)
    return _KNOWN.sub(_HIDDEN, text)


def has_credentials(address: str) -> bool:
    """Whether the address contains a password, a query or a token."""
    return without_credentials(address) != address[:_LONGEST]


MOST_PROBLEMS: Final = 100
"""Most problems that a validation reports."""

MOST_REPLICAS: Final = 150_000
"""Most replicas of one component. Source: the pods of the largest cluster that Kubernetes supports."""

_order: Final = attrgetter("path", "message", "kind")
"""The order of problems; sorting by it takes a tenth of the time of comparing them."""


def first_problems(problems: Iterable[Problem], most: int) -> tuple[Problem, ...]:
    """The problems, sorted by path; of more than `most`, the first ones and one that reports the cut."""
    first = list(islice(problems, most + 1))
    if len(first) <= most:
        return tuple(sorted(first, key=_order))
    more = Problem("spec", f"more than {most} problems; the others are not listed")
    return (*sorted(first[: most - 1], key=_order), more)


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


def key_problems(labels: Mapping[str, str], annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Report invalid keys of the labels and annotations of the object at `path`, and values of labels."""
    for field, entries in (("labels", labels), ("annotations", annotations)):
        for key, value in sorted(entries.items()):
            prefix = key.rpartition("/")[0]
            if not is_qualified_name(key) or prefix != prefix.lower():
                yield Problem(
                    f"{path}.{field}[{key}]",
                    f'invalid key "{key}" (expected an optional domain and "/", then at most '
                    f'{LABEL_LIMIT} letters, digits, "-", "_" and "." with a letter or digit at '
                    "both ends)",
                )
            if field == "labels" and not is_label_value(value):
                yield Problem(f"{path}.{field}[{key}]", not_a_label_value(value))


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
    texts are compared, with few options, and up to `_MOST_COMPARED` in a document.
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


def quantity_problems(text: object, path: str) -> Iterator[Problem]:
    """Report a value that is negative or not a quantity."""
    number = amount(text) if isinstance(text, str | int) and not isinstance(text, bool) else None
    if number is None:
        expected = "expected a number, for example 2, 500m or 16Gi"
        yield Problem(path, f'invalid quantity "{text}" ({expected})')
    elif number < 0:
        yield Problem(path, f'invalid quantity "{text}" (must not be negative)')
