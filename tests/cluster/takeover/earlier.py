"""What the Go operator leaves behind: recorded objects, written as it writes them, by POST and PUT."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cluster.world import World
from conformance.modes import MODES
from conformance.recordings import Case
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.labels import FINALIZER
from kube_runtime.types.meta import Kind, Object

MANAGER = "manager"
"""The name of the Go operator's binary."""

_SECONDARY = ("Secret", "PersistentVolumeClaim")
_KINDS = {each.name: each for each in (DynamoGraphDeployment.KIND, DynamoComponentDeployment.KIND)}


@dataclass(frozen=True, slots=True)
class GoOperator:
    """The objects of one recorded case, in the namespace of the test."""

    world: World
    case: Case
    mode: str = "none"

    def has_run(self) -> None:
        """Have the input, and all that the Go operator made of it."""
        for each in self.case.input(0):
            self.world.create(kind_of(each), each, manager="kubectl-create")
        recorded = self.case.recorded(MODES[self.mode], 0)
        assert recorded is not None
        made = [each for each in recorded.objects if each["kind"] not in _SECONDARY]
        for each in made:
            if each["kind"] == DynamoGraphDeployment.KIND.name:
                self._put(DynamoGraphDeployment.KIND, each["metadata"]["name"])
        for each in sorted(made, key=lambda each: each["kind"] not in _KINDS):
            if each["kind"] != DynamoGraphDeployment.KIND.name:
                self._post(each)

    def _post(self, recorded: Object) -> None:
        text = json.dumps(recorded).replace(self.case.namespace, self.world.namespace)
        body: Object = json.loads(text)
        body.pop("status", None)
        for address in ("clusterIP", "clusterIPs"):
            if "allocated" in str(body.get("spec", {}).get(address)):
                del body["spec"][address]
        metadata = body["metadata"]
        has_finalizer = metadata.pop("finalizers", None) is not None
        metadata["namespace"] = self.world.namespace
        for owner in metadata.get("ownerReferences", ()):
            owner["uid"] = self.world.read(_KINDS[owner["kind"]], owner["name"])["metadata"]["uid"]
        self.world.create(kind_of(body), body, manager=MANAGER)
        if has_finalizer:
            self._put(_KINDS[body["kind"]], metadata["name"])

    def _put(self, kind: Kind, name: str) -> None:
        """The Go operator adds its finalizer by a PUT of the whole object."""
        body = self.world.read(kind, name)
        body["metadata"]["finalizers"] = [FINALIZER]
        self.world.replace(kind, body, MANAGER)


def kind_of(body: Object) -> Kind:
    """The kind of a recorded object."""
    group, _, version = body["apiVersion"].rpartition("/")
    name = body["kind"]
    return Kind(group, version, name, f"{name.lower()}es" if name.endswith("s") else "")


def managers(body: Object) -> Iterator[tuple[str, str]]:
    """Who owns fields of an object itself, and by which operation."""
    for each in body["metadata"]["managedFields"]:
        if not each.get("subresource"):
            yield each["manager"], each["operation"]


def environment(template: Object) -> dict[str, Any]:
    found = template["spec"]["containers"][0].get("env", [])
    return {each["name"]: each for each in found}
