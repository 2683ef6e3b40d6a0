"""What a take-over would do to the recorded cases of the 1.5 line, with either version stored."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from conformance.compare import differences
from conformance.modes import MODES
from conformance.newer_recordings import SOURCES, NewerCase, newer_cases
from conformance.takeover import TYPES, cache_of, identified, in_other_order, settings_of
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.grove.read import live_templates
from dynamo_operator.features.grove.render import kept_fields
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import GROVE, on_provider
from dynamo_operator.process.stored_versions import TwoVersions
from dynamo_operator.shared.cluster import Facts, PodCliqueSet
from dynamo_operator.shared.templates import units, with_units
from dynamo_operator.takeover.plan import Origin
from dynamo_operator.versions.conversion import convert
from dynamoctl.installation.upgrade import Foreseen, foreseen
from kube_runtime.types.meta import Object, Resource, content_of

Version: TypeAlias = Literal["v1alpha1", "v1beta1"]

TWO_VERSIONS: Mapping[str, type[Resource]] = {
    type_.KIND.name: type_ for type_ in (DynamoGraphDeployment, DynamoComponentDeployment)
}


def cases_of(mode: str) -> Iterator[NewerCase]:
    """The cases that ran in a mode."""
    for source in SOURCES:
        yield from (case for case in newer_cases(source) if mode in case.recorded)


def taken_over(
    case: NewerCase, mode: str, stage: int, stored: Version, *, edit: Mapping[str, Any] | None = None
) -> tuple[list[Foreseen], set[str]]:
    """What becomes of each unit of pods of a case, and the names of the workloads.

    `edit` is laid over each service beforehand, in v1alpha1.
    """
    objects = _objects(case, mode, stage, stored, edit)
    origin = Origin.OUTDATED if edit else Origin.CURRENT
    sets = {it.key: origin for it in objects if isinstance(it, PodCliqueSet)}
    workloads = {it.metadata.name for it in objects if it.KIND.name in WORKLOADS}
    return [*foreseen(cache_of(MODES[mode], objects), settings_of(MODES[mode]), sets)], workloads


def kept_otherwise() -> dict[str, list[str]]:
    """The warnings about fields that recorded sets keep otherwise than their graphs request, by case."""
    kept: dict[str, list[str]] = {}
    for case in cases_of("grove"):
        cache = cache_of(MODES["grove"], _objects(case, "grove", 0, "v1beta1"))
        for graph in cache.list(DynamoGraphDeployment):
            on_grove = on_provider(graph, GROVE)
            facts = Facts(grove_served=True, live_templates=live_templates(on_grove, cache))
            kept[case.name] = [str(problem) for problem in kept_fields(on_grove, facts)]
    return kept


def _objects(
    case: NewerCase, mode: str, stage: int, stored: Version, edit: Mapping[str, Any] | None = None
) -> list[Resource]:
    bodies = [body for body in case.after(mode, stage).objects if body["kind"] in TYPES]
    return [_read(in_other_order(body), case.namespace, stored, edit) for body in bodies]


def lost_fields(mode: str) -> dict[str, set[str]]:
    """What workloads lose beside their pod templates when they are taken over: by field, the cases."""
    lost: dict[str, set[str]] = {}
    for case in cases_of(mode):
        for unit in taken_over(case, mode, 0, "v1beta1")[0]:
            live = content_of(unit.live)
            ours = units(unit.desired)
            beside = with_units(live, {name: kept for name, kept in ours.items() if name in units(live)})
            for found in differences({"": beside["spec"]}, {"": unit.desired["spec"]}):
                if found.is_ == "missing":
                    lost.setdefault(found.path, set()).add(case.name)
    return lost


WORKLOADS = ("Deployment", "LeaderWorkerSet", "PodCliqueSet")


def _read(body: Object, namespace: str, stored: Version, edit: Mapping[str, Any] | None) -> Resource:
    """A recorded object as the operator reads it."""
    metadata = {**body["metadata"], "namespace": namespace}
    if body["kind"] not in TWO_VERSIONS:
        return identified({**body, "metadata": metadata})
    generation = body.get("status", {}).get("observedGeneration", 1)
    document = {**body, "metadata": {**metadata, "generation": generation}}
    if stored == "v1beta1":
        kind = TWO_VERSIONS[body["kind"]].KIND
        read: Object = msgspec.json.decode(TwoVersions(kind).read(msgspec.json.encode(document)))
    else:
        read = convert(document, "nvidia.com/v1alpha1")
    if edit and body["kind"] == DynamoGraphDeployment.KIND.name:
        services = {name: {**service, **edit} for name, service in read["spec"]["services"].items()}
        read = {**read, "spec": {**read["spec"], "services": services}}
    return identified(read)
