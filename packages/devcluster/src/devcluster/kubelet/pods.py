"""The pods that are local processes: which, at which address, started and ended as the API server says."""

import asyncio
import shutil
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import msgspec
import structlog

from devcluster.components import kubeconfig
from devcluster.kubelet.containers import Container, now
from devcluster.kubelet.egress import loopback
from devcluster.kubelet.environment import Facts, environment
from devcluster.kubelet.programs import Program, Runtime, program_of
from devcluster.kubelet.status import CONDITIONS, ContainerState, pod_status
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Change
from kube_runtime.client.client import Client, Request
from kube_runtime.errors import NotFound, OperatorError
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Key, Kind, Metadata, Object, Resource
from kube_runtime.wire import path_of

LABEL = "fake-kubelet"
PROCESS = "process"
"""Value of the label of pods that are local processes; without it kwok simulates a pod."""
REASON = "fake-kubelet-reason"
"""Annotation: why a pod is simulated though it had the label."""
MOST_PODS = 16
"""More are simulated: each takes about 100 MB of memory."""
SIMULATION = Path(__file__).with_name("simulation.py")

_KINDS = {"Secret": Kind("", "v1", "Secret"), "ConfigMap": Kind("", "v1", "ConfigMap")}
_ACCOUNT = Kind("", "v1", "ServiceAccount")
_EVENT = Kind("", "v1", "Event")
_TOKEN_SECONDS = 365 * 24 * 3600
_ENDED = ("Succeeded", "Failed")
_HOST = "127.0.0.1"
_DEFAULT_GRACE_SECONDS = 30
_log = structlog.get_logger(__name__)


class PodMetadata(Metadata):
    """With the grace period of a deletion, in seconds."""

    deletion_grace_period_seconds: int | None = None


class PodInFull(Resource):
    """A pod with its whole spec and status."""

    KIND = Pod.KIND

    metadata: PodMetadata = PodMetadata()
    spec: Object = {}
    status: Object = {}


class RunningPod:
    """One pod: its containers, and the task that reports their states."""

    def __init__(
        self, kubelet: "Kubelet", pod: PodInFull, programs: Sequence[Program], number: int, events: str
    ) -> None:
        self.pod = pod
        self.number = number
        self._events = events
        self._kubelet = kubelet
        self._address = str(kubelet.network[number])
        self._host = loopback(kubelet.network[number])
        self._folder = kubelet.folder / "pods" / pod.metadata.uid
        self._started = pod.status.get("startTime") or now()
        self._changed = asyncio.Event()
        self._changed.set()
        self._ending: asyncio.Task[None] | None = None
        self.is_gone = False
        """Whether the pod does not exist any more. Else the next kubelet finds its logs."""
        self.containers = {it.spec["name"]: it for it in self._containers(programs)}

    async def run(self) -> None:
        """Run the containers, and report, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._report())
                for container in self.containers.values():
                    group.create_task(container.run())
        except ExceptionGroup:
            _log.exception("pod not run", pod=str(self.pod.key))
        finally:
            if self.is_gone:
                shutil.rmtree(self._folder, ignore_errors=True)

    def observe(self, pod: PodInFull) -> None:
        """Take note of a newer state. If it is to be deleted, begin to end the containers; then it is."""
        self.pod = pod
        self._changed.set()
        if pod.metadata.deletion_timestamp is not None and self._ending is None:
            self._ending = asyncio.create_task(self._end())

    @property
    def grace_seconds(self) -> float:
        """The time that its containers have to end."""
        asked = self.pod.metadata.deletion_grace_period_seconds
        own = self.pod.spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
        return float(own if asked is None else asked)

    async def _end(self) -> None:
        await asyncio.gather(*(it.end(self.grace_seconds) for it in self.containers.values()))
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.pod.metadata.uid}}
        request = Request("DELETE", path_of(Pod.KIND, *self.pod.key), body=msgspec.json.encode(options))
        with suppress(OperatorError):  # gone, or replaced by another
            await self._kubelet.client.ask(request, Pod.KIND, self.pod.key, repeatable=True)

    async def _report(self) -> None:
        reported: Object = {}
        while True:
            await self._changed.wait()
            self._changed.clear()
            status = pod_status(
                _conditions(self.pod.status, reported),
                [container.state for container in self.containers.values()],
                policy=self.pod.spec.get("restartPolicy", "Always"),
                address=self._address,
                host=_HOST,
                gates=[gate["conditionType"] for gate in self.pod.spec.get("readinessGates", ())],
                started=self._started,
                now=now(),
            )
            if status == reported:
                continue
            try:
                pod = await self._kubelet.client.merge_patch(
                    PodInFull,
                    self.pod.key,
                    {"status": status},
                    subresource="status",
                    uid=self.pod.metadata.uid,
                )
            except NotFound:
                return
            except OperatorError as error:
                _log.warning("status not reported", pod=str(self.pod.key), error=str(error))
                self._changed.set()
                await asyncio.sleep(1)
            else:
                self.pod, reported = pod, status

    def _containers(self, programs: Sequence[Program]) -> Iterator[Container]:
        before = {it["name"]: it for it in self.pod.status.get("containerStatuses", ())}
        for spec, program in zip(self.pod.spec["containers"], programs, strict=True):
            name = spec["name"]
            present = before.get(name, {})  # of a kubelet that was killed, and with it the process
            restarts = present.get("restartCount", 0) + ("running" in present.get("state", {}))

            async def variables(spec: Object = spec) -> Mapping[str, str]:
                return await self._variables(spec)

            yield Container(
                spec,
                state=ContainerState(name, spec.get("image", ""), restarts=restarts),
                policy=self.pod.spec.get("restartPolicy", "Always"),
                address=self._host,
                grace_seconds=self.grace_seconds,
                logs=self._folder / "logs" / name,
                program=program,
                environment=variables,
                changed=self._changed.set,
                record=partial(self._record, name),
            )

    def _record(self, container: str, type_: str, reason: str, message: str) -> None:
        """Report an Event, as `kubectl describe` shows it; a failure to do so is no failure of the pod."""
        name, namespace, at = self.pod.metadata.name, self.pod.metadata.namespace, now()
        body = {
            "metadata": {"generateName": f"{name}."},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": namespace,
                "name": name,
                "uid": self.pod.metadata.uid,
                "fieldPath": f"spec.containers{{{container}}}",
            },
            "type": type_,
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": self.pod.spec.get("nodeName", "")},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        request = Request("POST", path_of(_EVENT, namespace), body=msgspec.json.encode(body))
        self._kubelet.start(self._kubelet.client.ask(request, _EVENT, None, repeatable=False))

    async def _variables(self, spec: Object) -> Mapping[str, str]:
        metadata, pod_spec = self.pod.metadata, self.pod.spec
        fields = {
            "metadata.name": metadata.name,
            "metadata.namespace": metadata.namespace,
            "metadata.uid": metadata.uid,
            "spec.nodeName": pod_spec.get("nodeName", ""),
            "spec.serviceAccountName": pod_spec.get("serviceAccountName", "default"),
            "status.hostIP": _HOST,
            "status.podIP": self._host,  # where a process can listen
            "status.podIPs": self._host,
        }
        facts = Facts(fields, metadata.labels, metadata.annotations)
        declared = await environment(spec, facts, self._read)
        home = self._folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        credentials = await self._credentials()
        system = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOSTNAME": metadata.name,
            "DYN_SDK_DISABLE_ANSI_LOGGING": "1",
        }
        return (
            system
            | declared
            | self._kubelet.variables(self._host, self._events)
            | {"HOME": str(home), "KUBECONFIG": str(credentials)}
        )

    async def _read(self, kind: str, name: str) -> Object | None:
        try:
            return await self._kubelet.client.get_raw(_KINDS[kind], Key(self.pod.key.namespace, name))
        except NotFound:
            return None

    async def _credentials(self) -> Path:
        """A kubeconfig file of the pod's ServiceAccount: no file can be mounted without root."""
        account = self.pod.spec.get("serviceAccountName", "default")
        key = Key(self.pod.key.namespace, account)
        body = {"spec": {"expirationSeconds": _TOKEN_SECONDS}}
        request = Request("POST", path_of(_ACCOUNT, *key, "token"), body=msgspec.json.encode(body))
        answer = await self._kubelet.client.ask(request, _ACCOUNT, key, repeatable=True)
        token = msgspec.json.decode(answer)["status"]["token"]
        content = kubeconfig(
            name="playground",
            server=self._kubelet.server,
            authority=self._kubelet.authority,
            credential=token,
            namespace=key.namespace,
        )
        file = self._folder / "kubeconfig.yaml"
        file.write_bytes(content)
        return file


def _conditions(status: Object, reported: Object) -> list[Object]:
    """Conditions of others as they are now, and ours as they were reported."""
    others = [it for it in status.get("conditions", ()) if it["type"] not in CONDITIONS]
    return others + [it for it in (reported or status).get("conditions", ()) if it["type"] in CONDITIONS]


class Kubelet:
    """The pods of all nodes that are local processes."""

    def __init__(
        self,
        client: Client,
        *,
        server: str,
        authority: bytes,
        network: IPv4Network,
        folder: Path,
        find_runtime: Callable[[], Runtime | None],
        simulation: Sequence[str],
    ) -> None:
        self.client = client
        self.server = server
        self.authority = authority
        self.network = network
        self.folder = folder
        self._find_runtime = find_runtime
        self._simulation = simulation
        self._pods: dict[str, tuple[RunningPod, asyncio.Task[None]]] = {}
        self._tasks = set[asyncio.Task[None]]()

    async def run(self) -> None:
        """Run pods until cancelled."""
        informer = Informer(PodInFull, labels=f"{LABEL}={PROCESS}")
        informer.store.subscribe(self._on_change)
        try:
            await informer.run(self.client)
        finally:
            for _, task in self._pods.values():
                task.cancel()
            await asyncio.gather(*(task for _, task in self._pods.values()), return_exceptions=True)

    def container(self, namespace: str, pod: str, name: str) -> Container | None:
        """A container of a pod that is a local process; its first one without a name."""
        for running, _ in self._pods.values():
            if running.pod.key == (namespace, pod):
                return running.containers.get(name or next(iter(running.containers)))
        return None

    def variables(self, host: str, events: str) -> dict[str, str]:
        """What makes a program listen at this address only, and ask no other machine."""
        listens = ("DYN_HTTP_HOST", "DYN_SYSTEM_HOST", "DYN_TCP_RPC_HOST", "DYN_TCP_RESPONSE_STREAM_HOST")
        address, _, port = self.server.removeprefix("https://").partition(":")
        return dict.fromkeys((*listens, "DYN_EVENT_PLANE_HOST"), host) | {
            "DYN_ZMQ_BROKER_URL": events,
            "HF_HUB_OFFLINE": "1",
            "KUBERNETES_SERVICE_HOST": address,
            "KUBERNETES_SERVICE_PORT": port,
            "PYTHONUNBUFFERED": "1",
        }

    def _on_change(self, change: Change[PodInFull]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._forget(old.metadata.uid)
        if new is None:
            return
        present = self._pods.get(new.metadata.uid)
        if present is None:
            if new.spec.get("nodeName") and new.status.get("phase") not in _ENDED:
                self._begin(new)
        else:
            present[0].observe(new)

    def _begin(self, pod: PodInFull) -> None:
        runtime = self._find_runtime()
        programs = [
            program_of(spec, pod.metadata.labels, runtime, self._simulation)
            for spec in pod.spec["containers"]
        ]
        numbers = set(range(1, MOST_PODS + 1)) - {running.number for running, _ in self._pods.values()}
        names = [spec["name"] for spec in pod.spec["containers"]]
        unknown = [name for name, program in zip(names, programs, strict=True) if program is None]
        if unknown:
            self._leave(pod, f"container {unknown[0]} runs no program of Dynamo that works without a GPU")
        elif pod.spec.get("initContainers"):
            self._leave(pod, "it has init containers")
        elif not numbers:
            self._leave(pod, f"{MOST_PODS} pods are local processes already")
        else:
            events = runtime.events if runtime else ""
            running = RunningPod(self, pod, [it for it in programs if it], min(numbers), events)
            self._pods[pod.metadata.uid] = running, asyncio.create_task(running.run())
            running.observe(pod)

    def _forget(self, uid: str) -> None:
        if uid in self._pods:
            running, task = self._pods.pop(uid)
            running.is_gone = True
            task.cancel()

    def _leave(self, pod: PodInFull, reason: str) -> None:
        """Let kwok simulate the pod."""
        metadata = {"labels": {LABEL: None}, "annotations": {REASON: reason}}

        patch = self.client.merge_patch(PodInFull, pod.key, {"metadata": metadata}, uid=pod.metadata.uid)
        self.start(patch)

    def start(self, request: Coroutine[Any, Any, object]) -> None:
        """Send a request in the background; that it failed is not reported."""

        async def send() -> None:
            with suppress(OperatorError):
                await request

        task = asyncio.create_task(send())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
