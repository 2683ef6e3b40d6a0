"""What Kubernetes takes as a name, a label and an annotation, in the words of a problem."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping

from dynamo_operator.api.names import LABEL_LIMIT, SUBDOMAIN_LIMIT
from dynamo_operator.validation import Problem

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(rf"({_DNS_LABEL.pattern})(\.{_DNS_LABEL.pattern})*", re.ASCII)
_PLAIN = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)


def is_dns_label(text: str) -> bool:
    """Whether the text may name a container or a volume."""
    return len(text) <= LABEL_LIMIT and _DNS_LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether the text may name a Secret, a claim or a ServiceAccount."""
    return len(text) <= SUBDOMAIN_LIMIT and _SUBDOMAIN.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Whether the text may be the value of a label."""
    return len(text) <= LABEL_LIMIT and _PLAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Whether the text may be the key of a label or annotation, or the name of a resource."""
    prefix, slash, name = text.rpartition("/")
    return bool(name) and is_label_value(name) and (not slash or is_subdomain(prefix))


def name_problems(text: str, path: str, what: str) -> Iterator[Problem]:
    """One problem if the text does not name an object."""
    if not is_subdomain(text):
        yield Problem(
            path,
            f'"{text}" does not name {what}: expected at most {SUBDOMAIN_LIMIT} lower-case '
            'letters, digits, "-" and ".", with a letter or digit at both ends',
        )


def label_problems(labels: Mapping[str, str], path: str) -> Iterator[Problem]:
    """What the API server would refuse in labels."""
    yield from annotation_problems(labels, path)
    for key, value in sorted(labels.items()):
        if not is_label_value(value):
            yield Problem(f"{path}[{key}]", not_a_label_value(value))


def annotation_problems(annotations: Iterable[str], path: str) -> Iterator[Problem]:
    """What the API server would refuse in the keys of labels or annotations."""
    for key in sorted(annotations):
        if not is_qualified_name(key) or key.rpartition("/")[0] != key.rpartition("/")[0].lower():
            yield Problem(
                f"{path}[{key}]",
                f'"{key}" is no key: expected an optional domain and "/", then at most '
                f'{LABEL_LIMIT} letters, digits, "-", "_" and "." with a letter or digit at both '
                "ends",
            )


def not_a_label_value(text: str) -> str:
    """The message for a text that cannot be a label's value."""
    return (
        f'"{text}" is no label value: expected at most {LABEL_LIMIT} letters, digits, "-", "_" and '
        '"." with a letter or digit at both ends'
    )


def nearest(text: str, options: Iterable[str]) -> str:
    """`; did you mean …?` if one of the options looks like the text, else ""."""
    by_folded = {option.lower(): option for option in options}
    found = difflib.get_close_matches(text.lower(), by_folded, n=1)
    return f'; did you mean "{by_folded[found[0]]}"?' if found else ""
