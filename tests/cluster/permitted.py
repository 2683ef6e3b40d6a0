"""The requests of the operator that its roles do not allow, from the audit log of an API server.

As in RBAC, a rule allows by verb, group, resource and, if it has names, name. A list or watch that selects
one name counts as a request for that name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cluster.audit import entries, resource_of
from dynamoctl.installation.permissions import Rule

_BY_NAME = "metadata.name="
_ALLOWED_TO_ALL = ("selfsubjectreviews",)
"""Kubernetes lets every user read their own identity."""


@dataclass(frozen=True, slots=True, order=True)
class Request:
    verb: str
    group: str
    resource: str
    name: str


def requests(log: Path, user: str = "") -> Iterator[tuple[Request, int]]:
    """Each request of the operator for a resource, with the status code; "" is any user."""
    for entry in entries(log):
        if user in ("", entry["user"].get("username")) and "objectRef" in entry:
            yield _request(entry), entry.get("responseStatus", {}).get("code", 0)


def _request(entry: dict[str, Any]) -> Request:
    ref = entry["objectRef"]
    selected = parse_qs(urlsplit(entry["requestURI"]).query).get("fieldSelector", [""])[0]
    name = selected.removeprefix(_BY_NAME) if selected.startswith(_BY_NAME) else ""
    return Request(entry["verb"], ref.get("apiGroup", ""), resource_of(entry), ref.get("name") or name)


def refused(log: Path, user: str = "") -> set[Request]:
    """The requests that the API server refused with 403."""
    return {request for request, code in requests(log, user) if code == 403}


def beyond(log: Path, rules: Iterable[Rule], user: str = "") -> set[Request]:
    """The requests that none of these rules allows, whatever names the rules have."""
    sent = {request for request, _ in requests(log, user)}
    allowed_by = tuple(rules)
    return {
        request
        for request in sent
        if request.resource not in _ALLOWED_TO_ALL and not any(_allows(rule, request) for rule in allowed_by)
    }


def _allows(rule: Rule, request: Request) -> bool:
    is_about = rule.group == request.group and request.resource in rule.resources
    return is_about and request.verb in rule.verbs and (not rule.names or bool(request.name))
