"""The API server as several users see it, with the warnings that it gives."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass

from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of


@dataclass(frozen=True, slots=True)
class Told:
    """An answer of the API server. `text` is the message of an error."""

    code: int
    body: Object
    warnings: tuple[str, ...]

    @property
    def text(self) -> str:
        return str(self.body.get("message", ""))


@dataclass(frozen=True, slots=True)
class Asker:
    """Requests as any user, made by the administrator in that user's name."""

    server: str
    tls: ssl.SSLContext

    def create(self, kind: Kind, body: Object, *, user: str = "", is_tried_only: bool = True) -> Told:
        query = "?dryRun=All" if is_tried_only else ""
        path = path_of(kind, body["metadata"]["namespace"]) + query
        return self._ask("POST", path, body, user)

    def replace(self, kind: Kind, body: Object, *, user: str = "") -> Told:
        """A try to replace an object as a whole, whatever its version is."""
        at = body["metadata"]
        path = path_of(kind, at["namespace"], at["name"])
        while True:
            found = self._ask("GET", path, None, "")
            version = found.body["metadata"]["resourceVersion"]
            full = {**body, "metadata": {**at, "resourceVersion": version}}
            told = self._ask("PUT", f"{path}?dryRun=All", full, user)
            if told.code != 409:
                return told

    def patch(self, path: str, body: object, content_type: str) -> Told:
        return self._ask("PATCH", path, body, "", content_type)

    def get(self, path: str) -> Told:
        return self._ask("GET", path, None, "")

    def delete(self, kind: Kind, namespace: str, name: str) -> Told:
        return self._ask("DELETE", path_of(kind, namespace, name), None, "")

    def _ask(
        self, method: str, path: str, body: object, user: str, content_type: str = "application/json"
    ) -> Told:
        headers = {"Content-Type": content_type} if body is not None else {}
        if user:
            headers |= {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(  # noqa: S310  # the server is our own
            self.server + path, data=data, method=method, headers=headers
        )
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=60) as answer:  # noqa: S310
                return Told(answer.status, json.load(answer), _warnings(answer.headers))
        except urllib.error.HTTPError as error:
            with error:
                return Told(error.code, json.load(error), _warnings(error.headers))


def _warnings(headers: object) -> tuple[str, ...]:
    found = headers.get_all("Warning") or []  # type: ignore[attr-defined]
    return tuple(each.split('"', 1)[1].rsplit('"', 1)[0].replace('\\"', '"') for each in found)
