"""The API server with our kinds, asked whether it would take a document."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass

from dynamo_operator.crds import RESOURCES
from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of

KINDS: dict[str, Kind] = {resource.KIND.name: resource.KIND for resource in RESOURCES}


class Refused(Exception):
    """The API server said no, in these words."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Sends documents with strict field validation."""

    server: str
    tls: ssl.SSLContext

    def stored(self, document: Object) -> Object:
        """The document as the API server would store it; nothing is kept. Raises Refused."""
        kind = KINDS[document["kind"]]
        path = path_of(kind, document["metadata"]["namespace"])
        query = "dryRun=All&fieldValidation=Strict"
        return self._sent("POST", f"{path}?{query}", document, "application/json")

    def refusal(self, document: Object) -> str:
        """The API server's words for what is wrong, or "" if nothing is."""
        try:
            self.stored(document)
        except Refused as refused:
            return str(refused)
        return ""

    def status(self, owner: Object, status: Object) -> Object:
        """The status that is kept when it is written to the object. Raises Refused."""
        metadata = owner["metadata"]
        path = path_of(KINDS[owner["kind"]], metadata["namespace"], metadata["name"])
        apply = "application/apply-patch+yaml"
        self._sent("PATCH", f"{path}?fieldManager=test&force=true", owner, apply)
        change = {"status": status}
        merge = "application/merge-patch+json"
        written = self._sent("PATCH", f"{path}/status", change, merge)
        kept: Object = written.get("status", {})
        return kept

    def _sent(self, method: str, path: str, body: Object, content_type: str) -> Object:
        request = urllib.request.Request(  # noqa: S310 - the address is our own control plane's
            f"{self.server}{path}",
            method=method,
            data=json.dumps(body).encode(),
            headers={"Content-Type": content_type},
        )
        try:
            answer = urllib.request.urlopen(request, context=self.tls, timeout=60)  # noqa: S310
            with answer:
                found: Object = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(json.load(error)["message"]) from None
        return found
