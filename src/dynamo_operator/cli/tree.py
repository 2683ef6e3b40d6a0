"""The objects that belong to an object, as a tree, with what is ready marked."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text
from rich.tree import Tree

from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.kind import Kind, Object
from dynamo_operator.kube.types.apps import Deployment
from dynamo_operator.kube.types.core import Service, ServiceAccount
from dynamo_operator.kube.types.networking import Ingress
from dynamo_operator.kube.types.rbac import Role, RoleBinding

_KINDS = (
    ServiceAccount.KIND,
    Role.KIND,
    RoleBinding.KIND,
    DynamoComponentDeployment.KIND,
    Deployment.KIND,
    Kind("apps", "v1", "ReplicaSet", "replicasets"),
    Kind("", "v1", "Pod", "pods"),
    Service.KIND,
    Ingress.KIND,
    Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
)
# The condition that says "ready", by kind; other kinds are as they are.
_READY = {
    "DynamoGraphDeployment": "Ready",
    "DynamoComponentDeployment": "Available",
    "Deployment": "Available",
    "Pod": "Ready",
}


async def owned_objects(client: Client, namespace: str) -> dict[str, list[Object]]:
    """All objects of the kinds that a graph leads to, by the uid of each owner."""
    children: dict[str, list[Object]] = defaultdict(list)
    for kind in _KINDS:
        answer = await client.get_json(kind.path(namespace))
        for item in answer["items"]:
            item["kind"] = kind.name
            for owner in item["metadata"].get("ownerReferences", ()):
                children[owner["uid"]].append(item)
    return children


def tree(root: Object, children: Mapping[str, Iterable[Object]]) -> Tree:
    """`root` and everything under it, ready for printing."""
    drawn = Tree(_line(root), guide_style="dim")
    _grow(drawn, root, children)
    return drawn


def _grow(parent: Tree, root: Object, children: Mapping[str, Iterable[Object]]) -> None:
    order = {kind.name: position for position, kind in enumerate(_KINDS)}
    below = children.get(root["metadata"]["uid"], ())
    for child in sorted(below, key=lambda each: (order[each["kind"]], each["metadata"]["name"])):
        _grow(parent.add(_line(child)), child, children)


def _line(each: Object) -> Text:
    ready = _is_ready(each)
    mark = {True: ("✔ ", "green"), False: ("✘ ", "red"), None: ("  ", "")}[ready]
    line = Text.assemble(mark, (each["kind"], "bold"), " ", each["metadata"]["name"])
    if note := _note(each):
        line.append(f"  {note}", style="dim")
    return line


def _is_ready(each: Object) -> bool | None:
    """Whether the object says that it is ready. None means: its kind has no such condition."""
    type_ = _READY.get(each["kind"])
    if type_ is None:
        return None
    conditions: list[dict[str, Any]] = each.get("status", {}).get("conditions", [])
    return any(one["type"] == type_ and one["status"] == "True" for one in conditions)


def _note(each: Object) -> str:
    status: dict[str, Any] = each.get("status", {})
    match each["kind"]:
        case "DynamoGraphDeployment":
            return str(status.get("state", ""))
        case "Deployment" | "ReplicaSet":
            wanted = each.get("spec", {}).get("replicas", 1)
            return f"{status.get('readyReplicas', 0)}/{wanted}"
        case "Pod":
            return str(status.get("phase", ""))
        case _:
            return ""
