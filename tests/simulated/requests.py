"""A cluster with the controller of requests, which a test reconciles by hand."""

import hashlib
from collections.abc import Container
from typing import Any

from dynamo_operator import labels, names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.stored_versions import TwoVersions
from dynamo_operator.requests import hardware
from dynamo_operator.requests.api import (
    COPIER,
    FINAL_FILE,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    JobPod,
    Output,
    ProfilingConfig,
)
from dynamo_operator.requests.controller import RequestController
from dynamo_operator.requests.read import GpuDiscoveryRbac, RequestReader
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.report import Reporter
from dynamo_operator.versions.conversion import convert
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.status import StatusRateLimit
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.store import Cache
from kube_runtime.cache.watch import Changed, Removed
from kube_runtime.client.client import Client, Transport
from kube_runtime.controller.events import EventWriter
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import Job, Node, PersistentVolumeClaim, Pod
from kube_runtime.types.meta import Key, Kind, Object, R, controller_reference
from kube_runtime.wire import path_of
from simulated.caches import a_cache
from simulated.server import Server

REQUEST = Key("lab", "r")
LATER = "nvidia.com/v1beta1"


def a_spec(**fields: Any) -> DynamoGraphDeploymentRequestSpec:
    """A spec; fields of `profilingConfig` and of the spec by their names."""
    own = {name: fields.pop(name) for name in tuple(fields) if name in ProfilingConfig.__struct_fields__}
    profiling = ProfilingConfig(**{"profiler_image": "p:1", **own})
    given = {"model": "m", "backend": "vllm", "profiling_config": profiling, **fields}
    return DynamoGraphDeploymentRequestSpec(**given)


_TYPES = (
    *(DynamoGraphDeployment, DynamoGraphDeploymentRequest),
    *(Job, JobPod, Output, PersistentVolumeClaim),
)
_SETTINGS = RenderSettings()
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def request_controller(
    client: Client,
    cache: Cache,
    settings: RenderSettings = _SETTINGS,
    *,
    accepts_all: bool = False,
    excluded: Container[str] = (),
) -> RequestController:
    """The controller with this client and cache; other operators manage the `excluded` namespaces."""
    writer = Writer(client, cache, excluded=excluded)
    recorder = EventWriter(client, instance="i", metrics=RuntimeMetrics()).recorder("r")
    return RequestController(
        RequestReader(client, cache, settings, writer.excluded, accepts_all),
        Applier(writer, "hash", "generation"),
        GpuDiscoveryRbac(client, writer, cache, ""),
        Reporter(writer, recorder, StatusRateLimit(), client),
    )


class RequestWorld:
    """A cluster whose request is `REQUEST`."""

    request_kind = DynamoGraphDeploymentRequest.KIND
    """The kind with the version in which it is stored."""

    def __init__(self, settings: RenderSettings = _SETTINGS) -> None:
        self.server = Server()
        self.client = Client(self.server, field_manager="m")
        self.cache = a_cache(_TYPES)
        self.controller = request_controller(self.client, self.cache, settings, accepts_all=True)

    def add(self, kind: Kind, namespace: str, name: str, **fields: Any) -> None:
        """Create an object; some fields are of its metadata."""
        of_metadata = ("labels", "annotations", "ownerReferences", "managedFields")
        metadata = {field: fields.pop(field) for field in of_metadata if field in fields}
        metadata |= {"name": name, "namespace": namespace}
        self.server.storage.create(path_of(kind), kind.manifest(metadata, **fields))

    def stored(self, kind: Kind, namespace: str, name: str) -> Any:
        """The stored object; None if it does not exist."""
        return self.server.storage.objects.get(path_of(kind), {}).get(Key(namespace, name))

    def edit(self, patch: Object, subresource: str = "") -> None:
        """Merge a patch into the request."""
        self.server.storage.merge(path_of(self.request_kind), REQUEST, patch, subresource)

    async def reconciled(self) -> DynamoGraphDeploymentRequest:
        await self.request()
        await self.controller.reconcile(REQUEST)
        return await self.request()

    async def request(self) -> DynamoGraphDeploymentRequest:
        """The request, also in the cache."""
        request = await self.client.get(DynamoGraphDeploymentRequest, REQUEST)
        self.cache.store(DynamoGraphDeploymentRequest).on_watch_event(Changed(request))
        return request


class WrittenLater(RequestWorld):
    """A cluster whose request was written in v1beta1, and is stored in that version or in v1alpha1."""

    def __init__(self, spec: Object, settings: RenderSettings, *, is_stored_later: bool = True) -> None:
        super().__init__(settings)
        kinds = (DynamoGraphDeploymentRequest.KIND, DynamoGraphDeployment.KIND)
        stored = {kind: TwoVersions(kind, is_later=is_stored_later) for kind in kinds}
        later = TwoVersions(kinds[0]).stored
        write = {"apiVersion": LATER, "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:model": {}}}}
        metadata = {**REQUEST._asdict(), "managedFields": [write]}
        defaults = {"backend": "auto", "searchStrategy": "rapid", "autoApply": True}
        request = later.manifest(metadata, spec={**defaults, **spec})
        self.client.translations = {**stored}
        self.request_kind = stored[kinds[0]].stored
        if not is_stored_later:
            request = convert(request, self.request_kind.api_version)
        self.server.storage.create(path_of(self.request_kind), request)

    async def after(self, reconciles: int) -> DynamoGraphDeploymentRequest:
        """The request after so many reconciles."""
        for _ in range(reconciles):
            await self.reconciled()
        return await self.request()

    async def starts(self, transport: Transport | None = None) -> None:
        """Continue with a new process, which has seen what exists, over the server or another transport."""
        client = Client(transport or self.server, field_manager="m")
        client.translations = self.client.translations
        self.client, self.cache = client, a_cache(_TYPES)
        self.controller = request_controller(client, self.cache, self.controller.reader.settings)
        for type_ in _TYPES:
            async for page in client.pages(type_):
                for live in page.items:
                    self.cache.store(type_).on_watch_event(Changed(live))

    def later(self) -> Object:
        """The request as a client of v1beta1 reads it."""
        whole = self.stored(self.request_kind, *REQUEST)
        return whole if whole["apiVersion"] == LATER else convert(whole, LATER)

    def has_gpu_node(self, name: str = "gpu") -> None:
        """Add a node with 8 GPUs."""
        of_gpus = {hardware.PRODUCT: "NVIDIA-H200", hardware.MEMORY: "143771", hardware.COUNT: "8"}
        self.server.storage.create(path_of(Node.KIND), Node.KIND.manifest({"name": name, "labels": of_gpus}))

    async def graph(self) -> DynamoGraphDeployment:
        """The graph of the request."""
        return await self.client.get(DynamoGraphDeployment, REQUEST)

    async def graph_is(self, state: str, **replicas: int) -> None:
        """Report a state of the graph, and the replicas of its services, which are available."""
        await self._watched(DynamoGraphDeployment, REQUEST)
        is_later = self.request_kind != DynamoGraphDeploymentRequest.KIND
        names_of: str = "componentNames" if is_later else "componentName"
        counts = {
            name: {
                "componentKind": "Deployment",
                names_of: [name] if is_later else name,
                **dict.fromkeys(_COUNTS, count),
            }
            for name, count in replicas.items()
        }
        in_version = "components" if is_later else "services"
        status = {"state": state, in_version: counts}
        self.server.storage.merge(self._graphs, REQUEST, {"status": status}, "status")
        await self._watched(DynamoGraphDeployment, REQUEST)

    async def graph_is_gone(self) -> None:
        """Delete the graph."""
        graph = await self.graph()
        self.server.storage.delete(self._graphs, graph.key, {})
        self.cache.store(DynamoGraphDeployment).on_watch_event(Removed(graph.key, graph.metadata.uid))

    @property
    def _graphs(self) -> str:
        translation = self.client.translations.get(DynamoGraphDeployment.KIND)
        return path_of(translation.stored if translation else DynamoGraphDeployment.KIND)

    async def job_ends(self, end: str = "Complete") -> None:
        """End the Job, as if its pod had copied what the request's ConfigMap has."""
        namespace, name = key = Key(REQUEST.namespace, names.profiling_job(REQUEST.name))
        await self._watched(Job, key)
        status: Object = {"conditions": [{"type": end, "status": "True"}]}
        self.server.storage.merge(path_of(Job.KIND), key, {"status": status}, "status")
        job = await self._watched(Job, key)
        data = self.stored(Output.KIND, namespace, names.profiling_output(REQUEST.name))["data"]
        results = data.get(FINAL_FILE, "").encode()
        text = f"{hashlib.sha256(results).hexdigest()}  {FINAL_FILE}\n"
        ended: Object = {"name": COPIER, "state": {"terminated": {"exitCode": 0, "message": text}}}
        spec = self.stored(Job.KIND, namespace, name)["spec"]["template"]["spec"]
        fields: Object = {"spec": spec, "status": {"containerStatuses": [ended]}}
        fields |= {"labels": {"job-name": name}, "ownerReferences": [controller_reference(job, Job.KIND)]}
        self.add(Pod.KIND, namespace, "p", **fields)

    async def profiler_writes(self, **files: str) -> None:
        """Write files of the profiler; `__` in a name is a dot."""
        key = Key(REQUEST.namespace, names.profiling_output(REQUEST.name))
        data = {name.replace("__", "."): text for name, text in files.items()}
        if self.stored(Output.KIND, *key) is None:
            request = await self.request()
            owners = [controller_reference(request, request.KIND)]
            marks = {labels.REQUEST: REQUEST.name}
            self.add(Output.KIND, *key, labels=marks, ownerReferences=owners, data=data)
        self.server.storage.merge(path_of(Output.KIND), key, {"data": data})
        await self._watched(Output, key)

    async def _watched(self, type_: type[R], key: Key) -> R:
        """The object, which the watch has brought."""
        live = await self.client.get(type_, key)
        self.cache.store(type_).on_watch_event(Changed(live))
        return live
