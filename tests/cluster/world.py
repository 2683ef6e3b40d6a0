"""The API server as a test sees it: write something, then wait until the world is as it should be."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

from kube_runtime.kind import Kind, Object

NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
PODS = Kind("", "v1", "Pod", "pods")
EVENTS = Kind("", "v1", "Event", "events")

PATIENCE_SECONDS = 90.0
"""How long a test waits for what must come: no test may depend on a machine that has nothing else to do."""

BOOKMARK_SECONDS = 3
"""The shortest timeout of a watch for which the API server sends a bookmark, 2 s before the end."""

LONGEST_WATCH_SECONDS = 24


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

    def reapplied(self, kind: Kind, body: Object, manager: str) -> Object:
        """The object as it would be after a forced apply of that field manager. Nothing is written."""
        name = body["metadata"]["name"]
        query = f"?fieldManager={manager}&force=true&dryRun=All"
        path = kind.path(self.namespace, name) + query
        return self._request("PATCH", path, body, "application/apply-patch+yaml")

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

    def changes(self, kind: Kind, *, since: str, until: str = "") -> tuple[Object, ...]:
        """Each change in the namespace after `since` up to `until`, as `{"type": …, "object": …}`.

        Both are resource versions; `until` defaults to now. Complete, however slow the API server is: a
        watch is read until an event or a bookmark has reached `until`; another one resumes it if it ends.

        Raises:
            Refused: with code 410 when the API server does not remember `since`. It may forget after 75 s
                and 100 changes of the kind in the whole cluster; `cluster.history` records for longer.
        """
        path = kind.path(self.namespace)
        listed = self._request("GET", path)
        reached, goal = int(since), int(until or listed["metadata"]["resourceVersion"])
        found: list[Object] = []
        seconds, deadline = BOOKMARK_SECONDS, time.monotonic() + 2 * PATIENCE_SECONDS
        while reached < goal:
            if time.monotonic() > deadline:
                raise AssertionError(f"{kind}: changes up to {reached} and not {goal}")
            with closing(self._watch(kind, reached, seconds)) as events:
                for event in events:
                    reached = int(event["object"]["metadata"]["resourceVersion"])
                    if event["type"] != "BOOKMARK" and reached <= goal:
                        found.append(event)
                    if reached >= goal:
                        break
            # A list makes the watch cache, whose version bookmarks have, as fresh as etcd, unless that
            # takes too long.
            self._request("GET", path)
            seconds = min(2 * seconds, LONGEST_WATCH_SECONDS)
        return tuple(found)

    def _watch(self, kind: Kind, since: int, seconds: int) -> Generator[Object, None, None]:
        """The events of a watch that the API server ends after that time."""
        query = f"?watch=true&resourceVersion={since}&timeoutSeconds={seconds}"
        path = f"{kind.path(self.namespace)}{query}&allowWatchBookmarks=true"
        with self._answer("GET", path) as lines:
            for line in lines:
                event: Object = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(event["object"]["code"], event["object"]["message"])
                yield event

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
        """The object, as soon as it exists and `holds` is true of it; fails with its last state.

        `holds` always sees a status: on a busy machine an object may be some seconds old before it has one.
        """
        found: Object = self.until(
            lambda: (found := self.get(kind, name)) and holds({"status": {}} | found) and found,
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
        with self._answer(method, path, body, content_type) as answer:
            result: Object = json.load(answer)
            return result

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Object | None = None, content_type: str = ""
    ) -> Iterator[HTTPResponse]:
        request = urllib.request.Request(  # noqa: S310 - the server is our own
            self.server + path,
            data=json.dumps(body).encode() if body is not None else None,
            method=method,
            headers={"Content-Type": content_type} if content_type else {},
        )
        try:
            answer = urllib.request.urlopen(request, context=self.tls, timeout=PATIENCE_SECONDS)  # noqa: S310
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, json.load(error).get("message", "")) from None
        with answer:
            yield answer
