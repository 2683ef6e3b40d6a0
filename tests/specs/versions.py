"""Objects of both versions, drawn from the fields that conversion knows.

Names, volumes and paths are few, so that containers, variables and mounts of both places of a service meet.
What no API server stores is left out: two containers or components of one name, and two mounts at one place.
So are own containers of a service that have the name of one that the operator makes.
"""

from random import Random
from typing import Any

from dynamo_operator.versions import shapes, v1alpha1, v1beta1
from dynamo_operator.versions.shapes import Shape
from kube_runtime.types.meta import Object

API_VERSIONS = {"v1alpha1": v1alpha1.API_VERSION, "v1beta1": v1beta1.API_VERSION}
KINDS = {
    "GRAPH": "DynamoGraphDeployment",
    "COMPONENT_DEPLOYMENT": "DynamoComponentDeployment",
    "REQUEST": "DynamoGraphDeploymentRequest",
    "ADAPTER": "DynamoGraphDeploymentScalingAdapter",
}
"""The kinds by the names of their shapes."""

_TEXTS = {
    "name": ("a", "b", "main", "sidecar-frontend"),
    "frontendSidecar": ("a", "main", "sidecar-frontend"),
    "pvcName": ("a", "b"),
    "mountPath": ("/a", "/b"),
    "mountPoint": ("/a", "/b"),
    "type": ("worker", "prefill", "decode", "frontend"),
    "componentType": ("worker", "frontend"),
    "subComponentType": ("prefill", "decode", "other"),
    "phase": ("Pending", "Profiling", "Ready", "Deploying", "Deployed", "Failed"),
    "state": ("Pending", "Initializing", "Profiling", "Ready", "Deploying", "DeploymentDeleted", "Failed"),
    "optimizationType": ("latency", "throughput"),
}
_QUANTITIES = ("1", "1000m", "0.5", "1024Mi", "1Gi", "100m", "8", "0", "2.5Gi", "1e3")
_CHANCE = 0.35


def an_object(version: str, kind: str, dice: Random) -> Object:
    """An object of a kind, which is a key of `KINDS`."""
    body: Object = a_value(shape_of(version, kind), dice)
    body["metadata"] = {"name": dice.choice(("a", "x")), "namespace": "n"}
    return {"apiVersion": API_VERSIONS[version], "kind": KINDS[kind], **body}


def shape_of(version: str, kind: str) -> Shape:
    """What conversion reads of a kind in a version."""
    shape: Shape = getattr({"v1alpha1": v1alpha1, "v1beta1": v1beta1}[version], kind)
    return shape


def a_value(shape: Shape, dice: Random, name: str = "") -> Any:
    """A value of a shape."""
    match shape:
        case shapes.Text():
            return dice.choice(_TEXTS.get(name, ("x", "y z", "ä")))
        case shapes.Flag():
            return dice.random() < 0.5
        case shapes.Integer():
            return dice.choice((0, 1, 2, 7))
        case shapes.Number():
            return dice.choice((0, 0.5, 2, 300))
        case shapes.Quantity():
            return dice.choice(_QUANTITIES)
        case shapes.Anything() | shapes.AnyObject():
            return {"free": [{"x": 1, "y": None}, ""], "main": {}}
        case shapes.ListOf(item):
            return _unique([a_value(item, dice, name) for _ in range(dice.choice((0, 1, 2, 3)))], name)
        case shapes.MapOf(value):
            keys = dice.sample(("a", "B", "example.com/c", "main"), dice.choice((0, 1, 2)))
            return {key: a_value(value, dice, key) for key in keys}
        case shapes.Struct():
            return _fields(shape, dice)
    raise AssertionError(shape)


def _fields(shape: shapes.Struct, dice: Random) -> Object:
    chance = _CHANCE if len(shape.fields) > 4 else 0.7
    result = {
        name: a_value(field, dice, name) for name, field in shape.fields.items() if dice.random() < chance
    }
    if shape.is_open and dice.random() < 0.3:
        result["ofANewerVersion"] = {"deep": [1, {"x": None}]}
    if "mainContainer" in shape.fields and "containers" in result:
        made = ("main", "sidecar-frontend")
        result["containers"] = [item for item in result["containers"] if item.get("name") not in made]
    return result


def _unique(items: list[Any], name: str) -> list[Any]:
    """The items that a list of the API server may hold together."""
    if not items or not isinstance(items[0], dict):
        return items
    keyed: dict[Any, Any] = {}
    for item in items:
        if name == "volumeMounts":
            place = (item.get("name", ""), item.get("mountPath", item.get("mountPoint", "")))
            keyed.setdefault(place, item)
        elif name in ("containers", "initContainers", "ephemeralContainers", "components", "env", "envs"):
            keyed.setdefault(item.get("name", ""), item)
        else:
            keyed[len(keyed)] = item
    return [*keyed.values()]
