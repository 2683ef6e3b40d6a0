"""Remove the values of secrets from objects and texts. Pure."""

import re
from itertools import pairwise
from typing import Any

from kube_runtime.kind import Object

REDACTED = "REDACTED"

_SECRET_NAME = re.compile(
    r"(token(?!s|iz)|secret|passw(or)?d|passphrase|credential|private[-_]?key|api[-_]?key|access[-_]?key|auth)",
    re.IGNORECASE,
)
"""Names of variables, fields and annotations whose values are not shown."""

_REFERENCES = ("Ref", "Name", "Names", "From", "Path", "Secrets")
"""Suffixes of fields that refer to a secret and do not hold one: `secretKeyRef`, `secretName`."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_WORDS = r"token(?!s|iz)|secret|passw(?:or)?d|api[-_]?key"
_MARKED = re.compile(
    rf"""(?ix)
    (?P<head> \b(?:bearer|basic)\s{{1,8}}(?=\S{{8}})
            | (?:{_WORDS})[\w.-]{{0,64}}["']?\s{{0,8}}[=:]\s{{0,8}}["']?
    )
    [^\s"',;]{{4,}}
    """
)
"""A value after a word that announces a secret: `Bearer …`, `HF_TOKEN=…`, `"password": "…"`.

Only the value's own repetition is unbounded, so the time is linear in the text.
"""

_SHAPED = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|AKIA[0-9A-Z]{16}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)"
)
"""Tokens by their shape: Hugging Face, OpenAI, NVIDIA, GitHub, AWS, JSON web tokens."""

_USER_IN_URL = re.compile(r"(://)[^/\s:@]+:[^/\s@]+@")


def redacted_text(text: str) -> str:
    """The text without tokens, passwords and URLs that contain one."""
    cleaned = _MARKED.sub(lambda match: f"{match['head']}{REDACTED}", text)
    cleaned = _SHAPED.sub(REDACTED, cleaned)
    return _USER_IN_URL.sub(rf"\1{REDACTED}@", cleaned)


def redacted(body: Object) -> Object:
    """An object without values of secrets, managed fields and its last-applied copy."""
    metadata = {k: v for k, v in body.get("metadata", {}).items() if k != "managedFields"}
    notes = metadata.get("annotations")
    if notes:
        metadata["annotations"] = {k: v for k, v in notes.items() if k != _LAST_APPLIED}
    if body.get("kind") == "Secret":
        keys = {key: REDACTED for field in ("data", "stringData") for key in body.get(field) or {}}
        return {
            "apiVersion": body["apiVersion"],
            "kind": "Secret",
            "metadata": metadata,
            "data": keys,
        }
    result: Object = _value({**body, "metadata": metadata})
    return result


def _value(value: object) -> Any:
    if isinstance(value, dict):
        name = value.get("name")
        if isinstance(name, str) and isinstance(value.get("value"), str) and _is_secret(name):
            return {**value, "value": REDACTED}  # a variable of a container
        return {key: _field(key, entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [
            REDACTED if isinstance(entry, str) and _is_flag(before) else _value(entry)
            for before, entry in pairwise([None, *value])
        ]
    return redacted_text(value) if isinstance(value, str) else value


def _field(key: str, value: object) -> object:
    if isinstance(value, str) and _is_secret(key) and not key.endswith(_REFERENCES):
        return REDACTED
    return _value(value)


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def _is_flag(argument: Any) -> bool:
    """Whether the next argument of a command is a secret, as after `--api-key`."""
    is_bare = isinstance(argument, str) and argument.startswith("-") and "=" not in argument
    return is_bare and _is_secret(argument)
