"""Which requests of the operator its roles would not allow, by the audit log of an API server.

It decides as RBAC in the API server: by verb, group, resource and, where a rule has names, by name. A list
or watch that selects one name counts as about that name.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dynamoctl.installation.rule import Rule

AGENT = "dynamo-operator/"
_BY_NAME = "metadata.name="
_ANYBODY = ("selfsubjectreviews",)
"""Kubernetes lets every user ask for their own identity."""


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """What a request was for."""

    verb: str
    group: str
    resource: str
    name: str


def asked(log: Path, user: str = "") -> Iterator[tuple[Asked, int]]:
    """Each request of our client for a resource, with the status of its answer; "" is any user."""
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return  # the API server is still writing it
            entry = json.loads(line)
            is_ours = entry.get("userAgent", "").startswith(AGENT)
            is_theirs = user in ("", entry["user"].get("username"))
            if is_ours and is_theirs and "objectRef" in entry:
                yield _asked(entry), entry.get("responseStatus", {}).get("code", 0)


def _asked(entry: dict[str, Any]) -> Asked:
    about = entry["objectRef"]
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    selected = parse_qs(urlsplit(entry["requestURI"]).query).get("fieldSelector", [""])[0]
    name = selected.removeprefix(_BY_NAME) if selected.startswith(_BY_NAME) else ""
    return Asked(entry["verb"], about.get("apiGroup", ""), resource, about.get("name") or name)


def refused(log: Path, user: str = "") -> set[Asked]:
    """What the API server did refuse for want of permission."""
    return {each for each, code in asked(log, user) if code == 403}


def beyond(log: Path, rules: Iterable[Rule], user: str = "") -> set[Asked]:
    """What none of these rules allows, whatever its names are."""
    known = tuple(rules)
    found = {each for each, _ in asked(log, user) if each.resource not in _ANYBODY}
    return {each for each in found if not any(_allows(rule, each) for rule in known)}


def _allows(rule: Rule, request: Asked) -> bool:
    is_about = rule.group == request.group and request.resource in rule.resources
    return is_about and request.verb in rule.verbs and (not rule.names or bool(request.name))
