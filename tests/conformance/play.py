"""All cases of a mode, played on a real control plane with our operator.

All cases run at once, in separate namespaces, and the audit log shows when the operator has written nothing
for a while, so that no case waits long.
"""

import hashlib
import json
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TextIO

from cluster.conftest import ControlPlane, definitions
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import EVENTS, NAMESPACES, PODS, QUOTAS, SECRETS, Refused, World
from conformance.modes import MPI_SECRET, Mode
from conformance.normal import event
from conformance.outside import Outside, outside
from conformance.recordings import Case
from devcluster.instance import Instance
from dynamo_legacy.api import RESOURCES as LEGACY_RESOURCES
from dynamo_legacy.names import HorizontalPodAutoscaler
from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import (
    COPIER,
    MOCKED_RESULTS_FILE,
    RESULTS_FILE,
    DynamoGraphDeploymentRequest,
)
from kube_runtime.types.kinds import Deployment, Ingress, Job, Role, RoleBinding, Service, ServiceAccount
from kube_runtime.types.meta import Kind, Object
from offline.recorded import offline_differences

_REQUEST = DynamoGraphDeploymentRequest.KIND.name
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
VOLUMES = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
QUEUES = Kind("scheduling.run.ai", "v2", "Queue", "queues", namespaced=False)
COMPARED = (
    DynamoGraphDeployment.KIND,
    DynamoComponentDeployment.KIND,
    DynamoGraphDeploymentScalingAdapter.KIND,
    DynamoModel.KIND,
    DynamoGraphDeploymentRequest.KIND,
    Job.KIND,
    Deployment.KIND,
    Service.KIND,
    ServiceAccount.KIND,
    Role.KIND,
    RoleBinding.KIND,
    Ingress.KIND,
    SECRETS,
    Kind("", "v1", "ConfigMap", "configmaps"),
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
)
"""The kinds that an operator makes, wherever it runs."""

OPTIONAL = {
    "lws": Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets"),
    "podgroup": Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups"),
    "grove": Kind("grove.io", "v1alpha1", "PodCliqueSet", "podcliquesets"),
    "inferencepool": Kind("inference.networking.k8s.io", "v1", "InferencePool", "inferencepools"),
}
"""Those that it makes where they are installed."""

LEGACY = (*(each.KIND for each in LEGACY_RESOURCES), HorizontalPodAutoscaler.KIND)
"""Those that it makes of the older generation."""

_PLURALS = {each.name: each for each in (*COMPARED, *LEGACY)}
_ROOM = {"cpu": "100k", "memory": "1Pi", "pods": "10k", "nvidia.com/gpu": "10k"}
"""What each node has, so that every pod of every case finds a place."""

_STORAGE_CLASSES = {"fast": "fast", "standard": "standard", "x": "x", "none": ""}
"""Those of the volumes, by the beginning of the volumes' names; a PVC need not name one."""

_VOLUMES = 12
"""How many volumes there are of each class; there is no provisioner."""

_QUIET_SECONDS = 3.0
_SETTLING_SECONDS = 600.0


@dataclass(slots=True)
class Observed:
    """What exists after a stage of a case."""

    objects: list[Object] = field(default_factory=list)
    apply_errors: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    offline: list[str] = field(default_factory=list)
    """Where what `dynamoctl render` prints is not what was applied."""


Stage = tuple[str, int]


def play(
    mode: Mode, cases: Sequence[Case], folder: Path, is_expected: Callable[[Case, int, Observed], bool]
) -> dict[Stage, Observed]:
    """What our operator makes of these cases, by case and stage.

    Where that is not what is expected, it gets more time: nothing may depend on how fast a machine is.
    """
    with cluster(mode, folder) as (instance, everywhere), instance.audit_log.open(encoding="utf-8") as log:
        quiet = Quiet(log)
        worlds = {each.name: _namespace(everywhere, each) for each in cases}
        with (
            outside(mode, cases) as around,
            OperatorProcess(
                *(instance.kubeconfig, folder / "operator.log", (*OFF, *mode.flags)),
                program=around.program,
                variables=around.variables,
            ) as operator,
        ):
            operator.ready()
            observed: dict[Stage, Observed] = {}
            for stage in range(max(each.stages for each in cases)):
                now = [each for each in cases if stage < each.stages]
                errors = {each.name: _played(worlds[each.name], each, stage) for each in now}
                quiet.wait()
                collect = partial(_collect, everywhere, mode, stage, errors, around)
                observed |= eventually_expected(collect, now, is_expected)
                for each in now if not mode.is_legacy else ():  # render prints today's kinds
                    found = observed[each.name, stage]
                    found.offline = offline_differences(
                        *(worlds[each.name], mode, each, stage, found.objects, folder)
                    )
            _sound(operator)
    return observed


def eventually_expected(
    collect: Callable[[], dict[Stage, Observed]],
    cases: Sequence[Case],
    is_expected: Callable[[Case, int, Observed], bool],
) -> dict[Stage, Observed]:
    """What is collected, as soon as all of it is expected, or when there was time enough."""
    cases_by_name = {each.name: each for each in cases}
    deadline = time.monotonic() + _SETTLING_SECONDS
    while True:
        found = collect()
        unexpected = (
            name for (name, stage), each in found.items() if not is_expected(cases_by_name[name], stage, each)
        )
        if next(unexpected, None) is None or time.monotonic() > deadline:
            return found
        time.sleep(1)


def _sound(operator: OperatorProcess) -> None:
    """Hold the operator to it that it runs and has met no bug of its own."""
    bugs = [line for line in operator.log.read_text().splitlines() if "Traceback" in line]
    assert not bugs, bugs[0]
    assert operator.ended is None, operator.log.read_text()


@contextmanager
def cluster(mode: Mode, folder: Path, crds: Path | None = None) -> Iterator[tuple[Instance, World]]:
    """A control plane with what is installed in a mode, and all of it as its administrator sees it.

    `crds` is a file with our CRDs, if they are not those with one version.
    """
    file = crds or definitions(folder, *(LEGACY_RESOURCES if mode.is_legacy else ()))
    instance = Instance(f"conformance-{mode.name}", folder)
    try:
        instance.up(crds=mode.crds, crd_files=[file])
        everywhere = ControlPlane(instance).world("")
        _furnish(everywhere, mode)
        yield instance, everywhere
    finally:
        instance.down()


def _furnish(everywhere: World, mode: Mode) -> None:
    """Have what an installation has: room, volumes, the key pair for MPI, and queues where KAI is."""
    for node in everywhere.list(NODES):
        room = {"status": {"capacity": _ROOM, "allocatable": _ROOM}}
        everywhere.patch(NODES, node["metadata"]["name"], room, "status")
    for number, (name, storage_class) in product(range(_VOLUMES), _STORAGE_CLASSES.items()):
        metadata = {"name": f"{name}-{number}"}
        everywhere.create(VOLUMES, {"metadata": metadata, "spec": _volume(storage_class)})
    everywhere.create(NAMESPACES, {"metadata": {"name": "dynamo-system"}})
    system = World(everywhere.server, everywhere.tls, "dynamo-system")
    keys = {"private.key": "private", "private.key.pub": "public"}
    system.create(SECRETS, {"metadata": {"name": MPI_SECRET}, "stringData": keys})
    if "kai" in mode.crds:
        everywhere.create(QUEUES, {"metadata": {"name": "q1"}})


def _volume(storage_class: str) -> Object:
    return {
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
        "capacity": {"storage": "1Pi"},
        "storageClassName": storage_class,
        "hostPath": {"path": "/none"},
    }


def _namespace(everywhere: World, case: Case) -> World:
    everywhere.create(NAMESPACES, {"metadata": {"name": case.namespace}})
    return World(everywhere.server, everywhere.tls, case.namespace)


def _report_results(world: World, name: str, data: Mapping[str, str]) -> None:
    """Have the cluster end the profiling pod, and report the results as its copier does.

    The simulated kubelet reports nothing, so the request is paused until the digests are in the pod's status.
    """
    request = DynamoGraphDeploymentRequest.KIND

    def pause(text: str | None) -> None:
        world.patch(request, name, {"metadata": {"annotations": {labels.PAUSED: text}}})

    def ended() -> Object | None:
        pods = (pod for pod in world.list(PODS) if labels.REQUEST in pod["metadata"]["labels"])
        return next((pod for pod in pods if pod["status"].get("phase") == "Succeeded"), None)

    pause("true")
    world.eventually(
        request, name, lambda each: "paused" in json.dumps(each.get("status", {}).get("conditions"))
    )
    world.delete(QUOTAS, "none")
    pod = world.until(ended, within_seconds=_SETTLING_SECONDS)
    digests = (
        f"{hashlib.sha256(data[file].encode()).hexdigest()}  {file}\n"
        for file in (RESULTS_FILE, MOCKED_RESULTS_FILE)
        if file in data
    )
    report = {"terminated": {"exitCode": 0, "message": "".join(digests)}}
    statuses = [
        {**status, "state": report} if status["name"] == COPIER else status
        for status in pod["status"]["containerStatuses"]
    ]
    patch = {"status": {"containerStatuses": statuses}}
    world.patch(PODS, pod["metadata"]["name"], patch, "status")
    pause(None)


def _played(world: World, case: Case, stage: int) -> list[str]:
    """The errors of applying what a stage has; profiling leaves what was recorded before it ends."""
    if stage or case.output is None:
        return _apply(world, case.input(stage))
    # The cluster ends pods of Jobs at once, so none may come before the results are there.
    world.create(QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    errors = _apply(world, case.input(stage))
    (request,) = (each for each in case.input(stage) if each["kind"] == _REQUEST)
    name = request["metadata"]["name"]
    world.eventually(Job.KIND, f"profile-{name}")
    labels = {"dgdr.nvidia.com/name": name, "nvidia.com/managed-by": "dynamo-operator"}
    metadata = {"name": f"dgdr-output-{name}", "labels": labels}
    world.create(_PLURALS["ConfigMap"], {"metadata": metadata, "data": case.output})
    _report_results(world, name, case.output)
    ended = ("Ready", "Failed", "Deploying")
    world.eventually(
        DynamoGraphDeploymentRequest.KIND,
        name,
        lambda each: each.get("status", {}).get("state") in ended,
        within_seconds=_SETTLING_SECONDS,
    )
    return errors


def kind_of(name: str) -> Kind:
    """The kind of a document, in the version of the recordings of v0.9."""
    return _PLURALS[name]


def _apply(world: World, documents: Sequence[Object]) -> list[str]:
    errors = []
    for document in documents:
        try:
            match document:
                case {"$patch": change}:
                    kind = _PLURALS[change["kind"]]
                    world.patch(kind, change["name"], change["body"], change.get("sub", ""))
                case {"$delete": change}:
                    world.delete(_PLURALS[change["kind"]], change["name"])
                case _:
                    world.apply(_PLURALS[document["kind"]], document)
        except Refused as refused:
            errors.append(str(refused))
    return errors


def _collect(
    everywhere: World, mode: Mode, stage: int, errors: dict[str, list[str]], around: Outside
) -> dict[Stage, Observed]:
    found: dict[str, Observed] = defaultdict(Observed)
    kinds = (*COMPARED, *(LEGACY if mode.is_legacy else ()))
    for kind in (*kinds, *(OPTIONAL[each] for each in mode.crds if each in OPTIONAL)):
        for each in everywhere.list(kind):
            full = {"apiVersion": kind.api_version, "kind": kind.name, **each}
            found[each["metadata"]["namespace"]].objects.append(around.named(full))
    for each in everywhere.list(EVENTS):
        found[each["metadata"]["namespace"]].events.append(event(each))
    for name, said in errors.items():
        found[Case(name).namespace].apply_errors = said
    return {(name, stage): found[Case(name).namespace] for name in errors}


class Quiet:
    """Knows from the audit log when the last write was."""

    def __init__(self, log: TextIO) -> None:
        self._lines = log
        self._rest = ""
        self._newest: deque[str] = deque(maxlen=20)

    def wait(self) -> None:
        """Return when there was no write for a while."""
        last = time.monotonic()
        deadline = last + _SETTLING_SECONDS
        while time.monotonic() < last + _QUIET_SECONDS:
            if self._has_writes():
                last = time.monotonic()  # after reading, which may itself take seconds
            if last > deadline:
                writes = "\n".join(self._newest)
                raise AssertionError(f"not settled within {_SETTLING_SECONDS:g} s:\n{writes}")
            time.sleep(0.2)

    def _has_writes(self) -> bool:
        *lines, self._rest = (self._rest + self._lines.read()).split("\n")
        writes = [each for each in map(json.loads, lines) if _is_write(each)]
        self._newest.extend(
            f"{each['user']['username']} {each['verb']} {each['requestURI']}" for each in writes
        )
        return bool(writes)


_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_BACKGROUND = frozenset(
    ("leases", "events", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews")
)


def _is_write(entry: Object) -> bool:
    resource = entry.get("objectRef", {}).get("resource")
    is_ours = resource == "events" and entry.get("userAgent", "").startswith("dynamo-operator/")
    return entry["verb"] in _WRITES and (is_ours or resource not in _BACKGROUND)
