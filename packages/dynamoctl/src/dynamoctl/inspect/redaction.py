"""Remove the values of secrets from objects and texts. Pure.

In doubt, a value is removed. Every repetition in a pattern is bounded, or consumes what it has read, so the
time is linear in the text.
"""

import json
import re
from itertools import pairwise
from typing import Any

from kube_runtime.kind import Object

REDACTED = "REDACTED"

_WORDS = (
    r"token(?!s|iz)|secret|passw(?:or)?d|passphrase|pwd|credential|cookie|authorization|auth(?!or)"
    r"|(?:private|access|account|api|encryption|master|shared|signing|ssh)[-_]?key"
    r"|(?<![a-z])sig(?:nature)?(?![a-z])"
)
"""What the names of variables, fields, flags, parameters and annotations with secrets contain."""

_SECRET_NAME = re.compile(_WORDS, re.IGNORECASE)

_REFERENCE = re.compile(r"(Ref|Names?|From|FromSecret|Path|Secrets|[-_](?i:dir|file|name|path))$")
"""How names end that refer to a secret and do not hold one: `secretKeyRef`, `secretName`, `--token-file`."""

_KUBERNETES_FIELDS = {"secret", "serviceAccountToken"}
"""Fields of Kubernetes with such a name whose value is an object without secrets."""

_SHOWN_VARIABLE = re.compile(
    r"(?:(?:CUDA|DYN|DYNAMO|ETCD|GROVE|KUBERNETES|LWS|MODEL|NATS|NCCL|NIXL|NVIDIA|OMPI|OMP|OTEL|POD|PROMETHEUS|PYTHON|RAY"
    r"|RUST|SGL|SGLANG|TLLM|TORCH|TRANSFORMERS|TRITON|TRTLLM|UCX|VLLM|WORKER)(?:_\w+)?"
    r"|HF_(?:HOME|HUB_\w+)|HOME|HOST|HOSTNAME|LANG|LD_LIBRARY_PATH|LOG_LEVEL|PATH|PORT|PYTHON[A-Z]+|TZ|USER)\Z"
)
"""Variables whose values are shown, if their names do not announce a secret: those of the operator, of
Kubernetes, of Dynamo's runtime and of the engines."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
    r"(?:.{0,32768}?-----END [A-Z0-9 ]{0,40}-----|.{0,32768})",
    re.DOTALL,
)
"""A private key in PEM, also without its end. One of 8192 bits has 6,400 characters, in a log 9,600."""

_KEY_LINE = re.compile(r"(?m)(?:^|(?<=\s))[A-Za-z0-9+/]{64,76}={0,2}$")
"""A line of base64 as in PEM, of a key whose beginning is missing."""

_HEADER = re.compile(
    r"""(?ix) (?P<head> (?:authorization|cookie) \\{0,7}["']? [ \t]{0,8} [=:] [ \t]{0,8} \\{0,7}["']?)
    [^"'\r\n\\]+"""
)
"""A header with its whole value: `Authorization: token …`."""

_SCHEME = re.compile(r"(?i)(?P<head>\b(?:bearer|basic)[ \t]{1,8})[^\s\"',;]{8,}")

_ANNOUNCED = re.compile(
    rf"""(?ix) (?P<name> (?:{_WORDS}) [\w.-]{{0,128}})
    (?: \\{{0,7}}["']? [ \t]{{0,8}} (?: => | := | [=:] ) [ \t]{{0,8}} | (?P<blank> [ \t]{{1,8}}) )
    (?: [bru]{{1,2}} (?=["']))?"""
)
"""What stands before a secret: `HF_TOKEN=`, `"password": `, `--api-key `, `&sig=`."""

_ANNOUNCED_VALUE = re.compile(
    r"""(?xm)
    (?P<open> \[ ) [^\]\n]{0,4096}
    | (?P<escaped> \\{1,7}" ) [^"\n]*? (?= \\{0,7}" | $ )
    | (?P<double> " ) (?: [^"\\\n] | \\. )*
    | (?P<single> ' ) [^'\n]*
    | (?! [|>] | \{[\s"'\\}] ) [^\s"']+
    """
)

_NO_VALUE = re.compile(r"""(?i)(?:true|false|null|none|~|""|'')(?=[\s"',;)}\]]|\Z)""")
_FEW_DIGITS = re.compile(r"""[\d.]{1,8}(?:ms|s)?(?=[\s"',;)}\]]|\Z)""")
"""What follows "time to first token: "."""

_SHAPED = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|(?:sk|nvapi|glpat|pypi|xox[a-z])-[A-Za-z0-9_-]{10,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|(?:npm|dckr_pat)_[A-Za-z0-9_-]{20,}"
    r"|A[KS]IA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_+/=-]{10,}(?:\.[A-Za-z0-9_-]*){0,4})"
)
"""Tokens by their shape: Hugging Face, OpenAI, NVIDIA, GitLab, PyPI, Slack, GitHub, npm, Docker, AWS, Google,
JSON web tokens, and any JSON object in base64, as the login of a registry is."""

_USER_IN_URL = re.compile(
    r"(?P<head>://)(?:[^/\s@]{1,256}|[^/\s@:]{0,64}:[^\s@\"']{1,256})@(?!sha256:)"
)
_QUERY = re.compile(r"(?i)(?P<head>[?&](?:code|key|x-(?:amz|goog)-[a-z-]{1,32})=)[^&\s\"']+")
_USER_OPTION = re.compile(r"(?P<head>(?:\s-u|--user)[ =]{1,8}[\"']?[^\s:\"']{1,128}:)[^\s\"']+")


def redacted_text(text: str) -> str:
    """The text without private keys, tokens, passwords and URLs that contain one."""
    cleaned = _without_announced(_KEY_LINE.sub(REDACTED, _KEY_BLOCK.sub(REDACTED, text)))
    for pattern in (_HEADER, _SCHEME, _QUERY, _USER_OPTION):
        cleaned = pattern.sub(rf"\g<head>{REDACTED}", cleaned)
    cleaned = _SHAPED.sub(REDACTED, cleaned)
    return _USER_IN_URL.sub(rf"\g<head>{REDACTED}@", cleaned)


def _without_announced(text: str) -> str:
    parts: list[str] = []
    end = 0
    for match in _ANNOUNCED.finditer(text):
        if (
            match.start() >= end
            and _announces(match)
            and (value := _ANNOUNCED_VALUE.match(text, match.end()))
        ):
            opened = value[value.lastgroup] if value.lastgroup else ""
            parts += (text[end : match.end()], opened, REDACTED)
            end = value.end()
    return "".join((*parts, text[end:]))


def _announces(match: re.Match[str]) -> bool:
    """Whether a secret follows, and not the name of one, a switch, a tag or a measurement."""
    text, start, end = match.string, match.start(), match.end()
    before = re.split(r"[\s\"']", text[max(0, start - 64) : start])[-1]
    if _REFERENCE.search(match["name"]) or _NO_VALUE.match(text, end):
        return False
    if match["blank"]:  # the argument of a flag, such as `--registry-password x`
        return before.startswith("-") and not text.startswith("--", end)
    if re.search(r"[\"'][ \t]", match[0]) and text[end : end + 1] not in ('"', "'", "["):
        return False  # prose, such as `volume "hf-token" : not found`
    if "/" in before and "?" not in before and match[0].endswith(":"):
        return False  # an image, such as `registry.example.com/auth-proxy:1.0`
    return match["name"].lower() != "token" or not _FEW_DIGITS.match(text, end)


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
            "metadata": _value(metadata),
            "data": keys,
        }
    result: Object = _value({**body, "metadata": metadata})
    return result


def _value(value: object) -> Any:
    if isinstance(value, dict):
        name = value.get("name")
        cleaned = {key: _field(key, entry) for key, entry in value.items()}
        if isinstance(name, str) and "value" in value and not _is_shown(name):
            cleaned["value"] = REDACTED  # of a container's variable, or of a probe's header
        return cleaned
    if isinstance(value, list):
        return [
            REDACTED if isinstance(entry, str) and _is_flag(before) else _value(entry)
            for before, entry in pairwise([None, *value])
        ]
    return _string(value) if isinstance(value, str) else value


def _string(text: str) -> str:
    """The text without secrets. JSON, such as an earlier spec in an annotation, is treated as an object."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            body = json.loads(text)
            cleaned = _value(body)
            return redacted_text(text if cleaned == body else json.dumps(cleaned))
        except (ValueError, RecursionError):
            pass
    return redacted_text(text)


def _field(key: str, value: object) -> object:
    if not _is_secret(key) or _REFERENCE.search(key) or isinstance(value, bool) or value is None:
        return _value(value)
    if isinstance(value, dict) and key in _KUBERNETES_FIELDS:
        return _value(value)
    return REDACTED


def _is_shown(variable: str) -> bool:
    return _SHOWN_VARIABLE.match(variable) is not None and not _is_secret(variable)


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def _is_flag(argument: Any) -> bool:
    """Whether the next argument of a command is a secret, as after `--api-key`."""
    is_bare = isinstance(argument, str) and argument.startswith("-") and "=" not in argument
    return is_bare and _is_secret(argument) and not _REFERENCE.search(argument)
