"""Cases of the 1.5 line, played on a real control plane that serves both versions and stores v1beta1.

The operator converts and validates. What is compared: what is refused, and the statuses in both versions.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from cluster.conftest import ControlPlane
from cluster.models.launch import MODELS_PROGRAM, workers_at
from cluster.operator_process import OperatorProcess
from cluster.world import NAMESPACES, PODS, Refused, World
from conformance.compare import ABSENT, Difference, differences
from conformance.deviations import Row, explanation
from conformance.deviations import rows as older_rows
from conformance.modes import MODES
from conformance.newer import revisions_left_out, rows
from conformance.newer_recordings import SOURCES, NewerCase, newer_cases
from conformance.normal import normal
from conformance.play import NODES, Quiet, cluster, kind_of
from conformance.verdict import Verdict
from devcluster.instance import Instance
from devcluster.layout import free_ports
from dynamo_operator.admission.definitions import CONVERTED
from dynamo_operator.crds import custom_resource_definitions
from dynamo_operator.models.api import DynamoModel
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Kind, Object
from reviews.asking import OPERATOR
from reviews.registration import registration
from simulated.lora_fleet import Fleet

STORED: Final = "v1beta1"
_KINDS: Final = (
    *(type_.KIND for type_ in CONVERTED),
    *(replace(type_.KIND, version=STORED) for type_ in CONVERTED),
    DynamoModel.KIND,
)
_CLAIM_TEMPLATES: Final = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
_BINDINGS: Final = Kind("", "v1", "Binding", "bindings")
_SETTLING_SECONDS: Final = 600.0
_REQUEST: Final = "DynamoGraphDeploymentRequest"


@dataclass(slots=True)
class Seen:
    """What exists after a stage: objects by version, kind and name, and what was refused of the stage."""

    objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)


def played(mode: str, names: Sequence[str] = ()) -> list[NewerCase]:
    """The cases that are played in a mode: of those names, or all.

    Not those with a request, whose Job would have to end, and not those that edit a workload by its name.
    """
    everything = (case for source in SOURCES for case in newer_cases(source) if mode in case.recorded)
    return [case for case in everything if _is_playable(case) and (not names or case.name in names)]


def _is_playable(case: NewerCase) -> bool:
    documents = [document for stage in case.inputs for document in stage]
    kinds = {document.get("kind") or next(iter(document.values())).get("kind") for document in documents}
    return kinds.isdisjoint((_REQUEST, "Deployment"))


def seen(
    mode: str, cases: Sequence[NewerCase], folder: Path, patience_seconds: float = _SETTLING_SECONDS
) -> dict[tuple[str, int], Seen]:
    """What exists after each stage of these cases. It waits until all is expected, at most that long."""
    (port, health) = free_ports(2)
    address = f"https://127.0.0.1:{port}"
    crds = folder / "versions.json"
    items = [*custom_resource_definitions(ConversionWebhook(url=f"{address}/convert"), STORED)]
    crds.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    with cluster(MODES[mode], folder, crds) as (instance, everywhere), Fleet().running() as fleet:
        *_, namespace, account = OPERATOR.split(":")
        kubeconfig = ControlPlane(instance).administrator(namespace, account)
        instance.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(registration(address)))
        flags = (
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{health}",
            "--enable-webhooks",
            f"--webhook-bind-address=127.0.0.1:{port}",
            f"--webhook-namespace={namespace}",
            *MODES[mode].flags,
        )
        process = OperatorProcess(
            kubeconfig, folder / "operator.log", flags, program=MODELS_PROGRAM, variables=workers_at(fleet)
        )
        with process, instance.audit_log.open(encoding="utf-8") as log:
            process.says("webhooks are ready")
            everywhere.until(lambda: _are_converted(instance, everywhere), what=lambda: "no CA in the CRDs")
            quiet = Quiet(log)
            for number, node in enumerate(everywhere.list(NODES)):
                gpu = {_GPU_LABEL: "NVIDIA-H200" if number < 2 else None}
                everywhere.patch(NODES, node["metadata"]["name"], {"metadata": {"labels": gpu}})
            worlds = {case.name: _namespace(everywhere, case) for case in cases}
            found: dict[tuple[str, int], Seen] = {}
            for number in range(max(len(case.inputs) for case in cases)):
                now = [case for case in cases if number < len(case.inputs)]
                refused = {case.name: _applied(worlds[case.name], case.inputs[number]) for case in now}
                quiet.wait()
                deadline = time.monotonic() + patience_seconds
                while True:
                    _place_pods(everywhere)
                    stage = _collected(everywhere, now, refused)
                    if time.monotonic() > deadline or not any(
                        row is None for case in now for _, row in judged(case, mode, number, stage[case.name])
                    ):
                        break
                    time.sleep(1)
                found |= {(name, number): one for name, one in stage.items()}
            bugs = [line for line in process.log.read_text().splitlines() if "Traceback" in line]
            assert not bugs, bugs[0]
            assert process.ended is None
    return found


_GPU_LABEL: Final = "nvidia.com/gpu.product"
"""On the recorded cluster, two nodes had it."""


def _place_pods(everywhere: World) -> None:
    """Give each pod a node with the labels that it asks for.

    The recorded cluster asked for nothing else. The scheduler also wants volumes and devices, of which
    manifests have only the names.
    """
    nodes = everywhere.list(NODES)
    for pod in everywhere.list(PODS):
        metadata, spec = pod["metadata"], pod["spec"]
        fitting = (node["metadata"]["name"] for node in nodes if fits(spec, node["metadata"]["labels"]))
        name = None if spec.get("nodeName") else next(fitting, None)
        if name is None:
            continue
        world = World(everywhere.server, everywhere.tls, metadata["namespace"])
        target = {"kind": NODES.name, "name": name}
        try:
            world.create(_BINDINGS, {"metadata": {"name": metadata["name"]}, "target": target})
        except Refused as refused:  # the scheduler was faster, or the pod is gone
            if refused.code not in (404, 409):
                raise


def fits(spec: Object, labels: Mapping[str, str]) -> bool:
    """Whether the labels of a node are those that a pod asks for."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [term.get("matchExpressions") or () for term in required.get("nodeSelectorTerms") or ()]
    selected = (spec.get("nodeSelector") or {}).items() <= labels.items()
    return selected and (not terms or any(all(_holds(it, labels) for it in term) for term in terms))


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case operator:
            assert operator == "DoesNotExist", operator
            return value is None


def _are_converted(instance: Instance, everywhere: World) -> bool:
    """Whether the CRDs have the CA, and objects can be read in both versions."""
    definitions = [everywhere.read(CustomResourceDefinition.KIND, str(type_.KIND)) for type_ in CONVERTED]
    clients = [each["spec"]["conversion"]["webhook"]["clientConfig"] for each in definitions]
    return all(client.get("caBundle") for client in clients)


def _namespace(everywhere: World, case: NewerCase) -> World:
    everywhere.create(NAMESPACES, {"metadata": {"name": case.namespace}})
    return World(everywhere.server, everywhere.tls, case.namespace)


def _applied(world: World, documents: Iterable[Object]) -> list[str]:
    """The refusals of the documents of a stage."""
    refusals = []
    for document in documents:
        change = document.get("$patch") or document.get("$delete") or document
        is_claim = change["kind"] == _CLAIM_TEMPLATES.name
        kind = _CLAIM_TEMPLATES if is_claim else kind_of(change["kind"])
        if kind.group == "nvidia.com" and "metadata" not in change and kind != DynamoModel.KIND:
            kind = replace(kind, version=STORED)
        elif "apiVersion" in change:
            kind = replace(kind, version=change["apiVersion"].rpartition("/")[2])
        try:
            match document:
                case {"$patch": {"name": name, "body": list(operations)}}:
                    world.json_patch(kind, name, operations)
                case {"$patch": {"name": name, "body": body}}:
                    world.patch(kind, name, body)
                case {"$delete": {"name": name}}:
                    world.delete(kind, name)
                case _:
                    world.apply(kind, document)
        except Refused as refused:
            refusals.append(str(refused))
    return refusals


def _collected(
    everywhere: World, cases: Iterable[NewerCase], refused: Mapping[str, list[str]]
) -> dict[str, Seen]:
    by_namespace: defaultdict[str, Seen] = defaultdict(Seen)
    for kind in _KINDS:
        for body in everywhere.list(kind):
            name = body["metadata"]["name"]
            place = by_namespace[body["metadata"]["namespace"]].objects
            place[kind.version, kind.name, name] = body
    for case in cases:
        by_namespace[case.namespace].refusals = refused[case.name]
    return {case.name: by_namespace[case.namespace] for case in cases}


def status_differences(case: NewerCase, mode: str, number: int, ours: Seen) -> Iterator[Difference]:
    """Where what is refused or reported differs. Of specs, conformance.newer compares all."""
    recorded = case.after(mode, number)
    if bool(recorded.apply_errors) != bool(ours.refusals):
        sides = (tuple(found) or ABSENT for found in (recorded.apply_errors, ours.refusals))
        yield Difference("Input", "", *sides)
        return  # what one side does with what the other refuses, the other has not done
    if recorded.apply_errors and not number:
        return  # nothing to compare
    theirs: dict[str, Object] = {}
    for body in (*recorded.objects, *recorded.in_v1alpha1):
        if str(body.get("apiVersion")).startswith("nvidia.com/"):
            version = body["apiVersion"].rpartition("/")[2]
            theirs[f"{version} {body['kind']}/{body['metadata']['name']}"] = _status(body)
    theirs = revisions_left_out(theirs, recorded)
    mine = {
        f"{version} {kind}/{name}": _status({"kind": kind, **body})
        for (version, kind, name), body in ours.objects.items()
    }
    yield from differences(theirs, mine)


def _status(body: Object) -> Object:
    """The status without times and what differs from pod to pod."""
    status = {name: value for name, value in (body.get("status") or {}).items() if name != "lastScaleTime"}
    plain = normal({"kind": body["kind"], "metadata": {}, "status": status})
    return {"status": plain["status"]} if "status" in plain else {}


def judged(case: NewerCase, mode: str, number: int, ours: Seen) -> Iterator[tuple[Difference, Row | None]]:
    """The differences of a stage, each with the row that explains it; None if it is unintended."""
    for difference in status_differences(case, mode, number, ours):
        named = replace(difference, object=f"status {difference.object}")
        row = explanation(named, case.name, mode, rows())
        yield difference, row or explanation(_as_older(difference), case.name, mode, older_rows())


def _as_older(difference: Difference) -> Difference:
    """The difference as it is in v1alpha1, without the version: for rows of `deviations.yaml`."""
    version, _, name = difference.object.partition(" ")
    path = difference.path
    if version == STORED:
        path = path.replace("status.components", "status.services").replace(
            "status.component.", "status.service."
        )
    return replace(difference, object=name or version, path=path)


def status_rows() -> list[Row]:
    """The rows of `newer.yaml` that only a play can use."""
    return [row for row in rows() if row.objects[0].startswith("status ")]


def verdicts(mode: str, cases: Sequence[NewerCase], found: Mapping[tuple[str, int], Seen]) -> list[Verdict]:
    """The verdict on each of these cases, from what was seen of it."""
    return [
        Verdict(
            case.name,
            f"newer-{mode}",
            tuple(
                (number, difference, row)
                for number in range(len(case.inputs))
                for difference, row in judged(case, mode, number, found[case.name, number])
            ),
        )
        for case in cases
    ]
