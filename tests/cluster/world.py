"""The API server as a test sees it: write something, then wait until the world is as it should be."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynamo_operator.kube.kind import Kind, Object

NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
PODS = Kind("", "v1", "Pod", "pods")
EVENTS = Kind("", "v1", "Event", "events")

PATIENCE_SECONDS = 90.0
"""How long a test waits for what must come: no test may depend on a machine that has nothing else to do."""


class Refused(Exception):
    """The API server said no; `code` is the HTTP status, the text its message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass(frozen=True, slots=True)
class World:
    """One namespace on one API server."""

    server: str
    tls: ssl.SSLContext
    namespace: str

    def create(self, kind: Kind, body: Object) -> Object:
        """The created object; `apiVersion`, `kind` and the namespace are filled in."""
        metadata = {"namespace": self.namespace, **body["metadata"]}
        full = {"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": metadata}
        path = kind.path(self.namespace) + "?fieldValidation=Strict"
        return self._request("POST", path, full, "application/json")

    def apply(self, kind: Kind, body: Object) -> Object:
        """The object after a user's server-side apply; the namespace is filled in."""
        metadata = {**body["metadata"], "namespace": self.namespace}
        path = kind.path(self.namespace, metadata["name"]) + "?fieldManager=user&force=true"
        full = {**body, "metadata": metadata}
        return self._request("PATCH", path, full, "application/apply-patch+yaml")

    def get(self, kind: Kind, name: str) -> Object | None:
        """The object, or None when it does not exist."""
        try:
            return self._request("GET", kind.path(self.namespace, name))
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def list(self, kind: Kind) -> list[Object]:
        """All objects of the kind in the namespace, by name."""
        items = self._request("GET", kind.path(self.namespace))["items"]
        return sorted(items, key=lambda each: str(each["metadata"]["name"]))

    def version(self) -> str:
        """The present moment, as the API server counts: a resource version to ask for what came later."""
        found: str = self._request("GET", NAMESPACES.path())["metadata"]["resourceVersion"]
        return found

    def changes(self, kind: Kind, *, since: str) -> tuple[Object, ...]:
        """Each change in the namespace since that version, as `{"type": …, "object": …}`; takes a second."""
        query = f"?watch=true&resourceVersion={since}&timeoutSeconds=1"
        request = urllib.request.Request(self.server + kind.path(self.namespace) + query)  # noqa: S310
        with urllib.request.urlopen(request, context=self.tls, timeout=20) as lines:  # noqa: S310
            return tuple(json.loads(line) for line in lines)

    def patch(self, kind: Kind, name: str, patch: Object, subresource: str = "") -> Object:
        """The object after a merge patch."""
        path = kind.path(self.namespace, name, subresource)
        return self._request("PATCH", path, patch, "application/merge-patch+json")

    def delete(self, kind: Kind, name: str, propagation: str = "Background") -> None:
        """Ask for the deletion; it may take its time."""
        body = {"propagationPolicy": propagation}
        self._request("DELETE", kind.path(self.namespace, name), body, "application/json")

    def eventually(
        self,
        kind: Kind,
        name: str,
        holds: Callable[[Object], bool] = lambda _: True,
        *,
        within_seconds: float = PATIENCE_SECONDS,
    ) -> Object:
        """The object, as soon as it exists and `holds` is true of it; fails with its last state."""
        found: Object = self.until(
            lambda: (found := self.get(kind, name)) and holds(found) and found,
            what=lambda: f"{kind} {name}: {json.dumps(self.get(kind, name), indent=1)}",
            within_seconds=within_seconds,
        )
        return found

    def gone(self, kind: Kind, name: str, *, within_seconds: float = PATIENCE_SECONDS) -> None:
        """Return when the object does not exist any more."""
        self.until(lambda: self.get(kind, name) is None, within_seconds=within_seconds)

    def until(
        self,
        outcome: Callable[[], Any],
        *,
        what: Callable[[], str] = lambda: "",
        within_seconds: float = PATIENCE_SECONDS,
    ) -> Any:
        """The first true value of `outcome`."""
        deadline = time.monotonic() + within_seconds
        while not (value := outcome()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {within_seconds} s: {what()}")
            time.sleep(0.1)
        return value

    def _request(
        self, method: str, path: str, body: Object | None = None, content_type: str = ""
    ) -> Object:
        request = urllib.request.Request(  # noqa: S310 - the server is our own
            self.server + path,
            data=json.dumps(body).encode() if body is not None else None,
            method=method,
            headers={"Content-Type": content_type} if content_type else {},
        )
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=20) as answer:  # noqa: S310
                result: Object = json.load(answer)
                return result
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, json.load(error).get("message", "")) from None
