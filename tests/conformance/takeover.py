"""What a take-over would do to the pods of a recorded case, decided by our controllers' own functions.

No API server takes part. The recorded objects are in the cache as the Go operator left them, and each
workload that we would apply is compared with the one that runs.
"""

import base64
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import msgspec

from conformance.compare import differences
from conformance.modes import Mode
from conformance.recordings import Case, Recorded
from dynamo_operator.api import labels
from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.provider import is_on_grove, recorded
from dynamo_operator.cli.configuration import read_settings
from dynamo_operator.cli.flags import canonical
from dynamo_operator.controllers.adoption import adopted_components, adopted_workloads
from dynamo_operator.controllers.gang import in_use
from dynamo_operator.controllers.gather import registries_only
from dynamo_operator.controllers.observe import observe
from dynamo_operator.facts import Facts
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.apps import Deployment
from dynamo_operator.kube.types.core import PullSecret
from dynamo_operator.kube.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_operator.kube.types.leaderworkerset import LeaderWorkerSet
from dynamo_operator.kube.types.meta import OwnerReference, Resource
from dynamo_operator.lifecycle.adoption import Origin, with_kept_templates
from dynamo_operator.lifecycle.step import next_step
from dynamo_operator.lifecycle.templates import WORKLOADS, are_same, units
from dynamo_operator.render.component import component_objects
from dynamo_operator.render.graph import graph_objects
from dynamo_operator.render.provider import provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation.component import component_problems
from dynamo_operator.validation.graph import graph_problems
from dynamo_operator.validation.multinode import lacks_orchestrator
from dynamo_operator.validation.schema import defaulted
from simulated.caches import a_cache

_READ: dict[str, type[Resource]] = {
    each.KIND.name: each
    for each in (
        DynamoGraphDeployment,
        DynamoComponentDeployment,
        Deployment,
        LeaderWorkerSet,
        PodCliqueSet,
    )
}
_EMPTY = (PodClique, PodCliqueScalingGroup)


class Fate(StrEnum):
    """What becomes of the pods of one template."""

    SAME = "what we render is what runs"
    KEPT = "differs, and stays as it runs"
    REPLACED = "differs, and is written anew"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One unit of pods. `rendered` are the paths at which our own template differs from the one that runs."""

    workload: str
    unit: str
    fate: Fate
    rendered: tuple[str, ...]


def settings_of(mode: Mode) -> RenderSettings:
    """How the operator of a mode renders."""
    words = (each.removeprefix("--").partition("=") for each in canonical(list(mode.flags)))
    return read_settings({name: value or "true" for name, _, value in words}, environment={}).render


def taken_over(
    mode: Mode, case: Case, stage: int, found: Recorded, *, edit: Mapping[str, Any] | None = None
) -> Iterator[Outcome]:
    """What becomes of each unit of pods of a case. `edit` is laid over each service beforehand."""
    there = _There(mode, case, stage, found, edit or {})
    live = {(each["kind"], each["metadata"]["name"]): each for each in found.objects}
    for wanted, rendered in there.workloads():
        running = live.get((wanted["kind"], wanted["metadata"]["name"]))
        if running is None:
            continue
        theirs, ours = units(running), units(rendered)
        for name, unit in units(wanted).items():
            if name not in theirs:
                continue
            stays = are_same(wanted["kind"], unit, theirs[name])
            is_same = are_same(wanted["kind"], ours[name], theirs[name])
            fate = Fate.SAME if is_same else Fate.KEPT if stays else Fate.REPLACED
            paths = () if is_same else _paths(theirs[name], ours[name])
            yield Outcome(f"{wanted['kind']}/{wanted['metadata']['name']}", name, fate, paths)


def _paths(theirs: Object, ours: Object) -> tuple[str, ...]:
    found = differences({"": theirs}, {"": ours})
    return tuple(sorted({each.path for each in found if each.is_ != "missing"}))


@dataclass(frozen=True, slots=True)
class _There:
    """A recorded cluster, and what our operator wants in it."""

    mode: Mode
    case: Case
    stage: int
    found: Recorded
    edit: Mapping[str, Any]

    def workloads(self) -> Iterator[tuple[Object, Object]]:
        """Each workload as it would be applied, and as it is rendered."""
        resources = [self._decoded(each) for each in self.found.objects if each["kind"] in _READ]
        cache = a_cache((*_READ.values(), *_EMPTY), resources)
        settings = settings_of(self.mode)
        for each in resources:
            if isinstance(each, DynamoGraphDeployment):
                yield from self._of_graph(each, cache, settings)
            elif isinstance(each, DynamoComponentDeployment) and not each.metadata.controller:
                yield from self._of_component(each, cache, settings)

    def _of_graph(
        self, graph: DynamoGraphDeployment, cache: Cache, settings: RenderSettings
    ) -> Iterator[tuple[Object, Object]]:
        facts = self._facts()
        children = cache.owned_by(graph.metadata.uid, [DynamoComponentDeployment, PodCliqueSet])
        graph = recorded(graph, provider(graph, facts, {each.KIND.name for each in children}))
        if graph_problems(graph, settings):
            return
        step = next_step(graph, observe(graph, cache), {})
        facts = replace(facts, gang=in_use(graph, cache))
        rendered = graph_objects(step.graph, facts, settings)
        if is_on_grove(graph):
            yield from self._of_set(rendered)
        for each in adopted_components(rendered, cache):
            if each["kind"] == DynamoComponentDeployment.KIND.name:
                yield from self._of_component(_owned(each, graph), cache, settings)

    def _of_set(self, rendered: Sequence[Object]) -> Iterator[tuple[Object, Object]]:
        live = {each["metadata"]["name"]: each for each in self._of_kind(PodCliqueSet)}
        origin = Origin.OUTDATED if self.edit else Origin.CURRENT  # as managed fields would tell
        for each in rendered:
            if each["kind"] == PodCliqueSet.KIND.name and each["metadata"]["name"] in live:
                yield with_kept_templates(each, live[each["metadata"]["name"]], origin), each

    def _of_component(
        self, component: DynamoComponentDeployment, cache: Cache, settings: RenderSettings
    ) -> Iterator[tuple[Object, Object]]:
        facts = self._facts()
        if component_problems(component, settings) or lacks_orchestrator(component.spec, facts):
            return
        rendered = component_objects(component, facts, settings)
        wanted = adopted_workloads(component, rendered, cache)
        pairs = zip(wanted, rendered, strict=True)
        yield from (pair for pair in pairs if pair[0]["kind"] in WORKLOADS)

    def _facts(self) -> Facts:
        accounts = (
            each["metadata"]["name"]
            for each in self.found.objects
            if each["kind"] == "ServiceAccount"
            and each["metadata"].get("labels", {}).get(labels.COMPONENT_POD) == "true"
        )
        return Facts(
            pull_secrets=self._pull_secrets(),
            component_service_account=min(accounts, default=""),
            lws_served="lws" in self.mode.crds,
            grove_served="grove" in self.mode.crds,
            kai_served="kai" in self.mode.crds,
            kai_queues=frozenset(("dynamo", "q1")),
        )

    def _pull_secrets(self) -> dict[str, tuple[str, ...]]:
        """The pull secrets of the input, whose values were not recorded."""
        inputs = [each for stage in range(self.stage + 1) for each in self.case.input(stage)]
        hosts = defaultdict(list)
        for each in inputs:
            if each.get("type") == "kubernetes.io/dockerconfigjson":
                texts = each.get("stringData", {}).items()
                encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts}
                body = {"metadata": each["metadata"], "data": each.get("data", {}) | encoded}
                for host in registries_only(msgspec.convert(body, PullSecret)).data:
                    hosts[host].append(each["metadata"]["name"])
        return {host: tuple(sorted(names)) for host, names in hosts.items()}

    def _of_kind(self, type_: type[Resource]) -> list[Object]:
        return [each for each in self.found.objects if each["kind"] == type_.KIND.name]

    def _decoded(self, body: Object) -> Resource:
        """The object as the cache holds it; identities were not recorded, so kind and name stand for uids."""
        metadata = dict(body["metadata"])
        identity = {"namespace": self.case.namespace, "resourceVersion": "1"}
        metadata |= identity | {"uid": f"{body['kind']}/{metadata['name']}"}
        metadata["ownerReferences"] = [
            {**each, "uid": f"{each['kind']}/{each['name']}"}
            for each in metadata.get("ownerReferences", ())
        ]
        found = {**body, "metadata": metadata}
        if self.edit and body["kind"] == DynamoGraphDeployment.KIND.name:
            services = body["spec"].get("services", {})
            edited = {key: {**each, **self.edit} for key, each in services.items()}
            found["spec"] = {**body["spec"], "services": edited}
        text = msgspec.json.encode(defaulted(found))
        return msgspec.json.decode(text, type=_READ[body["kind"]])


def _owned(component: Object, graph: DynamoGraphDeployment) -> DynamoComponentDeployment:
    """The component as its controller reads it back."""
    found = msgspec.convert(defaulted(component), DynamoComponentDeployment)
    owner = OwnerReference(graph.KIND.name, graph.metadata.name, uid="", controller=True)
    metadata = msgspec.structs.replace(found.metadata, owner_references=(owner,))
    return msgspec.structs.replace(found, metadata=metadata)
