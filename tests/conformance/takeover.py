"""What a take-over would do to the recorded cases, as the Go operator left them.

To their pods: decided by our controllers' own functions, with the recorded objects in the cache. To other
objects: done by a running operator on a simulated API server, since writes and watches matter.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from conformance.compare import differences
from conformance.modes import Mode
from conformance.recordings import Case, Recorded, cases
from dynamo_operator import FIELD_MANAGER
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.crds import defaulted
from dynamo_operator.process.flags import canonical, read_settings
from dynamo_operator.process.scope import informers
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import (
    LeaderWorkerSet,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodGroup,
    PullSecret,
    Queue,
)
from dynamo_operator.shared.templates import WORKLOADS, mapped, units, with_units
from dynamo_operator.shared.transforms import registries_only
from dynamo_operator.takeover.plan import Origin
from dynamoctl.installation.upgrade import READ, Foreseen, foreseen
from kube_runtime.cache.store import Cache
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Key, Kind, Object, Resource, content_of
from kube_runtime.wire import path_of
from lifecycle.running import REST_SECONDS, running
from simulated.caches import a_store
from simulated.server import Server

_ANY_ORDER = ("cliques", "podCliqueScalingGroups")
_GRAPH = "DynamoGraphDeployment"
TYPES = {each.KIND.name: each for each in READ if each is not PullSecret}
STORED: Mapping[str, Kind] = {
    informer.type_.KIND.name: informer.type_.KIND for informer in informers(RenderSettings())
}
INSTALLED: Mapping[str, tuple[type[Resource], ...]] = {
    "grove": (PodCliqueSet, PodClique, PodCliqueScalingGroup),
    "lws": (LeaderWorkerSet,),
    "podgroup": (PodGroup,),
    "kai": (Queue,),
}


def settings_of(mode: Mode) -> RenderSettings:
    """How the operator of a mode renders."""
    words = (each.removeprefix("--").partition("=") for each in canonical(list(mode.flags)))
    return read_settings({name: value or "true" for name, _, value in words}, environment={}).render


def taken_over(
    mode: Mode, case: Case, stage: int, found: Recorded, *, edit: Mapping[str, Any] | None = None
) -> Iterator[Foreseen]:
    """What becomes of each unit of pods of a case. `edit` is laid over each service beforehand."""
    bodies = [in_other_order(each) for each in found.objects if each["kind"] in TYPES]
    objects = [_decoded(each, case, edit) for each in bodies]
    inputs = [each for earlier in range(stage + 1) for each in case.input(earlier)]
    objects += filter(None, map(_pull_secret, inputs, [case] * len(inputs)))
    # What managed fields would show, which were not recorded.
    origin = Origin.OUTDATED if edit else Origin.CURRENT
    sets = {each.key: origin for each in objects if isinstance(each, PodCliqueSet)}
    return foreseen(cache_of(mode, objects), settings_of(mode), sets)


def paths(each: Foreseen) -> set[str]:
    """Where the template that we would write has something else than the one that runs, or more."""
    sides = (units(content_of(each.live)), units(each.rendered))
    theirs, ours = ({"": side[each.unit]} for side in sides)
    return {found.path for found in differences(theirs, ours) if found.is_ != "missing"}


def orders(workload: Object) -> dict[str, list[str]]:
    """The names of cliques and scaling groups of a PodCliqueSet in their order; {} for other kinds."""
    template = workload["spec"].get("template", {})
    return {field: [entry["name"] for entry in template[field]] for field in _ANY_ORDER if field in template}


def in_other_order(body: Object) -> Object:
    """A recorded object with its lists in an order that the Go operator may have written as well.

    It iterates over maps and over its cache, and the recordings are sorted.
    """
    if body["kind"] not in WORKLOADS:
        return body
    reordered = {name: mapped(unit, _with_pull_secrets_reversed) for name, unit in units(body).items()}
    found = with_units(body, reordered)
    if body["kind"] != PodCliqueSet.KIND.name:
        return found
    template = dict(found["spec"]["template"])
    template |= {field: template[field][::-1] for field in _ANY_ORDER if field in template}
    return {**found, "spec": {**found["spec"], "template": template}}


def _with_pull_secrets_reversed(template: Object) -> Object:
    secrets = template["spec"].get("imagePullSecrets")
    if not secrets:
        return template
    return {**template, "spec": {**template["spec"], "imagePullSecrets": secrets[::-1]}}


def cluster(mode: Mode) -> Server:
    """A simulated server with all recorded cases, and a pod of each Deployment that serves."""
    server = Server()
    for case in cases(mode):
        recorded = case.recorded(mode, 0)
        assert recorded is not None
        store(server, recorded.objects, case.namespace)
    return server


def store(server: Server, objects: Iterable[Object], namespace: str) -> None:
    """Store what an earlier operator left in a namespace, and a pod of each Deployment."""
    for body in sorted(objects, key=_rank):
        if body["kind"] in STORED:
            _store(server, in_other_order(body), namespace)
        if body["kind"] == Deployment.KIND.name:
            _store(server, _pod_of(body), namespace)


@asynccontextmanager
async def taking_over(server: Server, mode: Mode, *, lag_seconds: float) -> AsyncIterator[None]:
    """Run an operator on the server of `cluster`, whose watches lag from then on."""
    server.STREAMS_LISTS = False  # whose lines would lag, too
    server.lag_seconds = lag_seconds
    kinds = [type_.KIND for crds in mode.crds for type_ in INSTALLED.get(crds, ())]
    async with running(server=server, installed=kinds, render=settings_of(mode)):
        await asyncio.sleep(2 * REST_SECONDS)
        yield


def _pod_of(deployment: Object) -> Object:
    metadata = {
        "name": deployment["metadata"]["name"],
        "labels": deployment["spec"]["template"]["metadata"]["labels"],
    }
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "n"},
        "status": ready,
    }


def _rank(body: Object) -> int:
    kinds = (_GRAPH, DynamoComponentDeployment.KIND.name)
    return kinds.index(body["kind"]) if body["kind"] in kinds else len(kinds)


def _store(server: Server, body: Object, namespace: str) -> None:
    references = []
    for reference in body["metadata"].get("ownerReferences", ()):
        owner = Key(namespace, reference["name"])
        found = (
            server.storage.objects.get(path_of(STORED[reference["kind"]]), {})
            if reference["kind"] in STORED
            else {}
        )
        uid = found[owner]["metadata"]["uid"] if owner in found else "gone"
        references.append({**reference, "uid": uid})
    metadata = {**body["metadata"], "namespace": namespace, "ownerReferences": references}
    # With its managed fields upgraded, which is what ours does first where they were recorded.
    server.storage.apply(path_of(STORED[body["kind"]]), {**body, "metadata": metadata}, FIELD_MANAGER)


def stored(server: Server, kind: Kind) -> dict[str, Object]:
    """The objects of one kind, by `case/name`."""
    return {
        f"{key.namespace.removeprefix('c-')}/{key.name}": body
        for key, body in server.storage.objects.get(path_of(kind), {}).items()
    }


def cache_of(mode: Mode, objects: list[Resource]) -> Cache:
    served = {type_ for crds in mode.crds for type_ in INSTALLED.get(crds, ())}
    optional = {type_ for types in INSTALLED.values() for type_ in types}
    stores = [a_store(each, objects) for each in READ]
    for store in stores:
        if store.type_ in optional - served:
            store.mark_kind_gone()
    return Cache(stores)


def _decoded(body: Object, case: Case, edit: Mapping[str, Any] | None) -> Resource:
    """A recorded object as the cache holds it."""
    found = {**body, "metadata": {**body["metadata"], "namespace": case.namespace}}
    if edit and body["kind"] == _GRAPH:
        services = body["spec"].get("services", {})
        edited = {key: {**each, **edit} for key, each in services.items()}
        found["spec"] = {**body["spec"], "services": edited}
    return identified(found)


def identified(body: Object) -> Resource:
    """The object as the cache holds it, with kind and name in place of uids."""
    metadata = dict(body["metadata"])
    metadata |= {"resourceVersion": "1", "uid": f"{body['kind']}/{metadata['name']}"}
    metadata["ownerReferences"] = [
        {**each, "uid": f"{each['kind']}/{each['name']}"} for each in metadata.get("ownerReferences", ())
    ]
    found = {**body, "metadata": metadata}
    return msgspec.json.decode(msgspec.json.encode(defaulted(found)), type=TYPES[body["kind"]])


def _pull_secret(body: Object, case: Case) -> PullSecret | None:
    """A pull secret of the input, since values were not recorded."""
    if body.get("type") != "kubernetes.io/dockerconfigjson":
        return None
    texts = body.get("stringData", {}).items()
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts}
    metadata = {**body["metadata"], "namespace": case.namespace, "uid": body["metadata"]["name"]}
    data = body.get("data", {}) | encoded
    return registries_only(msgspec.convert({"metadata": metadata, "data": data}, PullSecret))
