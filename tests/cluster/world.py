"""A test's view of the API server: write an object, then wait until the cluster is as expected."""

import json
import select
import ssl
import time
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from kube_runtime.types.kinds import Deployment, Ingress, Role, RoleBinding, Service, ServiceAccount
from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of

GRAPH = DynamoGraphDeployment.KIND
COMPONENT = DynamoComponentDeployment.KIND
ADAPTER = DynamoGraphDeploymentScalingAdapter.KIND
MODEL = DynamoModel.KIND
DEPLOYMENT = Deployment.KIND
SERVICE = Service.KIND
CHILDREN = (
    *(COMPONENT, DEPLOYMENT, SERVICE, Ingress.KIND),
    *(ServiceAccount.KIND, Role.KIND, RoleBinding.KIND),
)
SECRETS = Kind("", "v1", "Secret", "secrets")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
QUOTAS = Kind("", "v1", "ResourceQuota", "resourcequotas")
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
PODS = Kind("", "v1", "Pod", "pods")
EVENTS = Kind("", "v1", "Event", "events")

_OF_DYNAMO = (
    *("DynamoGraphDeploymentRequest", "DynamoGraphDeployment", "DynamoModel"),
    *("DynamoDeployment", "DynamoNimDeployment", "DynamoNimRequest", "DynamoNim"),
    *("DynamoGraphDeploymentScalingAdapter", "DynamoComponentDeployment"),
)
WORKING = (
    *(Kind("nvidia.com", "v1alpha1", name, f"{name.lower()}s") for name in _OF_DYNAMO),
    Kind("grove.io", "v1alpha1", "PodCliqueSet", "podcliquesets"),
    Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets"),
    Kind("apps", "v1", "Deployment", "deployments"),
    Kind("batch", "v1", "Job", "jobs"),
    Kind("", "v1", "ConfigMap", "configmaps"),
    Kind("", "v1", "Secret", "secrets"),
    PODS,
)
"""What makes operators and controllers work for as long as it exists, owners first."""

PATIENCE_SECONDS = 180.0
"""Timeout of all waits, long enough for a busy machine."""

BOOKMARK_SECONDS = 3
"""The shortest timeout of a watch with a bookmark, which the API server sends 2 s before the end."""

LONGEST_WATCH_SECONDS = 24

_IDLE: defaultdict[tuple[str, ssl.SSLContext], deque[HTTPConnection]] = defaultdict(deque)
"""Open connections, by server and TLS context: a handshake costs both sides more than a request."""


class Refused(Exception):
    """The API server refused a request; `code` is the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass(frozen=True, slots=True)
class World:
    """One namespace on one API server."""

    server: str
    tls: ssl.SSLContext
    namespace: str

    def create(self, kind: Kind, body: Object, *, is_tried_only: bool = False, manager: str = "") -> Object:
        """Create an object, with `apiVersion`, `kind` and namespace filled in; return it."""
        metadata = {"namespace": self.namespace, **body["metadata"]}
        full = {"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": metadata}
        query = "?fieldValidation=Strict" + ("&dryRun=All" if is_tried_only else "")
        path = path_of(kind, self.namespace) + query + (f"&fieldManager={manager}" if manager else "")
        return self._request("POST", path, full, "application/json")

    def replace(self, kind: Kind, body: Object, manager: str) -> Object:
        """Write an object as a whole, as that field manager; return it."""
        path = path_of(kind, self.namespace, body["metadata"]["name"])
        query = f"?fieldValidation=Strict&fieldManager={manager}"
        return self._request("PUT", path + query, body, "application/json")

    def apply(self, kind: Kind, body: Object, manager: str = "user") -> Object:
        """Apply an object as that field manager, with the namespace filled in; return it."""
        metadata = {**body["metadata"], "namespace": self.namespace}
        path = path_of(kind, self.namespace, metadata["name"]) + f"?fieldManager={manager}&force=true"
        full = {**body, "metadata": metadata}
        return self._request("PATCH", path, full, "application/apply-patch+yaml")

    def reapplied(self, kind: Kind, body: Object, manager: str) -> Object:
        """The object after a forced apply of that field manager, by a dry run."""
        name = body["metadata"]["name"]
        query = f"?fieldManager={manager}&force=true&dryRun=All"
        path = path_of(kind, self.namespace, name) + query
        return self._request("PATCH", path, body, "application/apply-patch+yaml")

    def get(self, kind: Kind, name: str) -> Object | None:
        """The object, or None if it does not exist."""
        try:
            return self._request("GET", path_of(kind, self.namespace, name))
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def read(self, kind: Kind, name: str) -> Object:
        found = self.get(kind, name)
        assert found is not None, f"{kind} {name} does not exist"
        return found

    def list(self, kind: Kind) -> list[Object]:
        """All objects of the kind in the namespace, by name."""
        items = self._request("GET", path_of(kind, self.namespace))["items"]
        return sorted(items, key=lambda item: str(item["metadata"]["name"]))

    def version(self) -> str:
        """The current resource version, for `since` of `changes`."""
        version: str = self._request("GET", path_of(NAMESPACES))["metadata"]["resourceVersion"]
        return version

    def changes(self, kind: Kind, *, since: str, until: str = "") -> tuple[Object, ...]:
        """Each change in the namespace after `since` up to `until`, as `{"type": …, "object": …}`.

        Both are resource versions; `until` defaults to now. Complete even if the API server is slow: watches
        are read until an event or a bookmark has reached `until`.

        Raises:
            Refused: with code 410 if the API server no longer has `since`. It may forget after 75 s and 100
                changes of the kind in the whole cluster; `cluster.history` records for longer.
        """
        path = path_of(kind, self.namespace)
        listed = self._request("GET", path)
        reached, goal = int(since), int(until or listed["metadata"]["resourceVersion"])
        events_until_goal: list[Object] = []
        seconds, deadline = BOOKMARK_SECONDS, time.monotonic() + 2 * PATIENCE_SECONDS
        while reached < goal:
            if time.monotonic() > deadline:
                raise AssertionError(f"{kind}: changes up to {reached} and not {goal}")
            with closing(self._watch(kind, reached, seconds)) as events:
                for event in events:
                    reached = int(event["object"]["metadata"]["resourceVersion"])
                    if event["type"] != "BOOKMARK" and reached <= goal:
                        events_until_goal.append(event)
                    if reached >= goal:
                        break
            # A list brings the watch cache up to date, whose version bookmarks have.
            self._request("GET", path)
            seconds = min(2 * seconds, LONGEST_WATCH_SECONDS)
        return tuple(events_until_goal)

    def _watch(self, kind: Kind, since: int, seconds: int) -> Generator[Object, None, None]:
        """The events of a watch, which the API server ends after that time."""
        query = f"?watch=true&resourceVersion={since}&timeoutSeconds={seconds}"
        path = f"{path_of(kind, self.namespace)}{query}&allowWatchBookmarks=true"
        with self._answer("GET", path) as lines:
            for line in lines:
                event: Object = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(event["object"]["code"], event["object"]["message"])
                yield event

    def patch(self, kind: Kind, name: str, patch: Object, subresource: str = "") -> Object:
        """Apply a merge patch; return the object."""
        path = path_of(kind, self.namespace, name, subresource)
        return self._request("PATCH", path, patch, "application/merge-patch+json")

    def json_patch(self, kind: Kind, name: str, operations: object) -> Object:
        """Apply a JSON patch; return the object."""
        path = path_of(kind, self.namespace, name)
        return self._request("PATCH", path, operations, "application/json-patch+json")

    def delete(self, kind: Kind, name: str, propagation: str = "Background") -> None:
        """Request the deletion, without waiting for it."""
        body = {"propagationPolicy": propagation}
        self._request("DELETE", path_of(kind, self.namespace, name), body, "application/json")

    def clear(self) -> None:
        """Delete what keeps the cluster busy, without waiting for it.

        A deleted namespace costs the API server about 150 requests, which was a quarter to a third of all
        requests of the suite.
        """
        for kind in WORKING:
            path = f"{path_of(kind, self.namespace)}?propagationPolicy=Background&gracePeriodSeconds=0"
            try:
                with self._answer("DELETE", path) as answer:
                    answer.read()  # it may nest too deeply to be decoded
            except Refused as refused:
                if refused.code != 404:  # a kind that is not installed
                    raise

    def eventually(
        self,
        kind: Kind,
        name: str,
        holds: Callable[[Object], bool] = lambda _: True,
        *,
        within_seconds: float = PATIENCE_SECONDS,
    ) -> Object:
        """Wait until the object exists and `holds` is true of it; return it. Fails with its last state.

        `holds` gets an empty status if the object has none yet.
        """
        result: Object = self.until(
            lambda: (body := self.get(kind, name)) and holds({"status": {}} | body) and body,
            what=lambda: f"{kind} {name}: {json.dumps(self.get(kind, name), indent=1)}",
            within_seconds=within_seconds,
        )
        return result

    def gone(self, kind: Kind, name: str, *, within_seconds: float = PATIENCE_SECONDS) -> None:
        self.until(lambda: self.get(kind, name) is None, within_seconds=within_seconds)

    def until(
        self,
        outcome: Callable[[], Any],
        *,
        what: Callable[[], str] = lambda: "",
        within_seconds: float = PATIENCE_SECONDS,
    ) -> Any:
        """Poll until `outcome` returns something true; return that."""
        deadline, pause = time.monotonic() + within_seconds, 0.05
        while not (value := outcome()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {within_seconds} s: {what()}")
            time.sleep(pause)
            pause = min(1.2 * pause, 0.5)  # each poll costs the API server a request
        return value

    def _request(self, method: str, path: str, body: object = None, content_type: str = "") -> Object:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with self._answer(method, path, body, content_type) as answer:
                    result: Object = json.loads(answer.read())
                    return result
            except Refused as refused:
                # So it answers for a moment after a change of a CRD, and has done nothing; clients try again.
                if "storage is (re)initializing" not in str(refused) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _connection(self) -> HTTPConnection:
        scheme, host, *_ = urlsplit(self.server)
        if scheme == "http":  # a proxy between
            return HTTPConnection(host, timeout=PATIENCE_SECONDS)
        return HTTPSConnection(host, context=self.tls, timeout=PATIENCE_SECONDS)

    @contextmanager
    def _answer(
        self, method: str, path: str, body: object = None, content_type: str = ""
    ) -> Iterator[HTTPResponse]:
        idle = _IDLE[self.server, self.tls]
        connection = _usable(idle) or self._connection()
        answer = None
        try:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": content_type} if content_type else {}
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            if answer.status >= 400:
                text = answer.read().decode()
                # a path of no kind is answered without a Status
                message = json.loads(text).get("message", "") if text.startswith("{") else text
                raise Refused(answer.status, message)
            yield answer
        finally:
            if answer is not None and answer.isclosed() and not answer.will_close:
                idle.append(connection)
            else:  # not read to its end
                connection.close()


def _usable(idle: deque[HTTPConnection]) -> HTTPConnection | None:
    """A connection that the server has not closed meanwhile, if there is one."""
    while True:
        try:
            connection = idle.pop()
        except IndexError:
            return None
        if not is_readable(connection.sock.fileno()):
            return connection
        connection.close()


def is_readable(descriptor: int, seconds: float = 0) -> bool:
    """Wait so long for something to read, or for an end; `select` takes no descriptor above 1023."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
