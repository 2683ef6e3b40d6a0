"""A recorded case that has been played: what `dynamoctl render` prints for it, against what was applied."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from cluster.world import World
from conformance.modes import Mode
from conformance.recordings import Case
from conformance.takeover import settings_of
from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.settings import RenderSettings, fields
from dynamoctl.authoring.render import print_objects
from kube_runtime.errors import ConfigErrors
from kube_runtime.types.meta import Object
from offline.comparison import Identity, identity, is_applied, unequal

WITHOUT_WEBHOOKS = {
    "ingress-virtualservice-fields": "an Istio gateway that is not allowed: its VirtualService is withheld"
}
"""Cases that webhooks, which are off here, would refuse as `dynamoctl render` does."""

_NO_QUEUE = "its KAI queue does not exist, which only a cluster knows: nothing is applied"
WAITING = dict.fromkeys(("kai-manual-scheduler", "kai-queue-default", "kai-queue-missing"), _NO_QUEUE)
"""Cases of the mode `grovekai` that lack something that render does not ask for."""

_GRAPH = DynamoGraphDeployment.KIND.name
_REQUEST = DynamoGraphDeploymentRequest.KIND.name


def offline_differences(
    world: World, mode: Mode, case: Case, stage: int, live: Sequence[Object], folder: Path
) -> list[str]:
    """Where what is printed is not what the operator has applied for a case, up to a stage.

    The first stage is printed from the case's own file; a later one from the live objects, as `kubectl get`
    writes them: an edit is a patch there.
    """
    given = [each for each in case.input(0) if "kind" in each]
    names = {identity(each) for each in given}
    there = {identity(each): each for each in live if identity(each) in names}
    documents = [there[name] for name in sorted(there)] if stage else _with_uids(given, there)
    results = [each for each in live if _is_result(each)]
    documents = [*documents, *results]
    facts = {f"{api}Served": api in mode.crds for api in ("grove", "istio", "kai", "lws")}
    try:
        found = _printed(documents, case.namespace, folder, settings=settings_of(mode), facts=facts)
    except ConfigErrors as refused:
        if case.name in WITHOUT_WEBHOOKS:
            return []
        applied = sorted(str(identity(each)) for each in live if is_applied(each))
        texts = "; ".join(str(each) for each in refused.exceptions)
        return [f"{each}: applied, and refused by render: {texts}" for each in applied]
    if mode.name == "grovekai" and case.name in WAITING:
        return [
            f"{identity(each)}: applied" for each in live if is_applied(each) and identity(each) not in names
        ]
    different = unequal(world, found, live, [*given, *results])
    if any(_restarts(each, is_edited=stage > 0) for each in there.values()):
        different = [each for each in different if labels.RESTART_AT not in each]
    return different


def _restarts(graph: Object, *, is_edited: bool) -> bool:
    """Whether running pods may have another id of a restart than the spec, which only a cluster knows.

    While a restart is in progress, its end is printed, where all services carry its id. Pods keep the id of a
    restart that an edit has removed from the spec.
    """
    restart = graph.get("status", {}).get("restart") or {}
    is_wanted = (graph.get("spec", {}).get("restart") or {}).get("id")
    return graph["kind"] == _GRAPH and (restart.get("phase") == "Restarting" or (is_edited and not is_wanted))


def _is_result(body: Object) -> bool:
    """Whether it is a ConfigMap that a profiler has left, which a request makes a graph of."""
    name: str = body["metadata"]["name"]
    return body["kind"] == "ConfigMap" and name.startswith("dgdr-output-")


def _with_uids(given: Iterable[Object], there: Mapping[Identity, Object]) -> list[Object]:
    """The documents; requests with the uid that a cluster has given them, which their Jobs contain."""
    found = []
    for each in given:
        live = there.get(identity(each))
        if live is not None and each["kind"] == _REQUEST:
            metadata = {**each["metadata"], "uid": live["metadata"]["uid"]}
            found.append({**each, "metadata": metadata})
        else:
            found.append(each)
    return found


def _printed(
    documents: Sequence[Object], namespace: str, folder: Path, *, settings: RenderSettings, facts: Object
) -> list[Object]:
    """What `dynamoctl render` prints for documents, by its own entry point and from files.

    Raises: ExceptionGroup of ConfigError for what the command refuses.
    """
    source = _file(folder / "in.json", {"apiVersion": "v1", "kind": "List", "items": documents})
    out = io.StringIO()
    with redirect_stdout(out):
        print_objects(
            [str(source)],
            orchestrator="deployment",
            facts=_file(folder / "facts.json", facts),
            namespace=namespace,
            output="json",
            settings=_file(folder / "settings.json", _settings_file(settings)),
        )
    found: list[Object] = json.loads(out.getvalue())["items"]
    return found


def _file(path: Path, body: Any) -> Path:
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


def _settings_file(settings: RenderSettings) -> Object:
    default = RenderSettings()
    return {
        each.key: _text(each.path[-1], getattr(settings, each.path[-1]))
        for each in fields()
        if each.path[0] == "render" and getattr(settings, each.path[-1]) != getattr(default, each.path[-1])
    }


def _text(name: str, value: Any) -> Any:
    """A value as the file has it: durations have a unit."""
    return f"{value}s" if name.endswith("_seconds") else value
