"""What stands beside graphs in the same files: facts that the cluster will have once all of it is applied."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dynamo_graphs.validation.cluster_context import ClusterContext
from dynamoctl.manifests import Manifest
from kube_runtime.kind import Object


def neighbours(found: Sequence[Manifest], namespace: str) -> dict[str, ClusterContext]:
    """By namespace, the PersistentVolumeClaims and ConfigMaps of files.

    `namespace` is that of objects that name none. What else is in the cluster stays unknown.
    """
    claims: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    maps: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for value in (each.value for each in found):
        metadata = _mapping(value, "metadata")
        name, place = metadata.get("name"), metadata.get("namespace") or namespace
        if value.get("apiVersion") != "v1" or not isinstance(name, str):
            continue
        if value.get("kind") == "PersistentVolumeClaim":
            claims[place][name] = tuple(_texts(_mapping(value, "spec").get("accessModes")))
        elif value.get("kind") == "ConfigMap":
            keys = (_mapping(value, field) for field in ("data", "binaryData"))
            maps[place][name] = frozenset(str(key) for each in keys for key in each)
    return {
        place: ClusterContext(written_claims=claims[place], config_maps=maps[place])
        for place in {*claims, *maps}
    }


def _mapping(value: Object, field: str) -> Object:
    found = value.get(field)
    return found if isinstance(found, dict) else {}


def _texts(value: object) -> Iterator[str]:
    yield from (
        each for each in (value if isinstance(value, list) else ()) if isinstance(each, str)
    )
