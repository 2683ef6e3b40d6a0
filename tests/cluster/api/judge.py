"""The API server with our kinds, asked whether it would take a document."""

from dataclasses import dataclass, replace

from cluster.world import Refused, World
from dynamo_operator.crds import RESOURCES
from kube_runtime.types.meta import Kind, Object

KINDS: dict[str, Kind] = {resource.KIND.name: resource.KIND for resource in RESOURCES}


@dataclass(frozen=True, slots=True)
class Judge:
    """Sends documents with strict field validation."""

    world: World

    def stored(self, document: Object) -> Object:
        """The document as the API server would store it; nothing is kept. Raises Refused."""
        return self.world.create(KINDS[document["kind"]], document, is_tried_only=True)

    def refusal(self, document: Object) -> str:
        """The API server's words for what is wrong, or "" if nothing is."""
        try:
            self.stored(document)
        except Refused as refused:
            return str(refused)
        return ""

    def status(self, owner: Object, status: Object) -> Object:
        """The status that is kept when it is written to the object. Raises Refused."""
        world, kind = replace(self.world, namespace=owner["metadata"]["namespace"]), KINDS[owner["kind"]]
        world.apply(kind, owner)
        written = world.patch(kind, owner["metadata"]["name"], {"status": status}, "status")
        kept: Object = written.get("status", {})
        return kept
