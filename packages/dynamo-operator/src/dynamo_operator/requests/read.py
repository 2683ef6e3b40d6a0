"""Read the inputs of a request's next action: objects, permissions, GPU discovery.

An object that is missing in the cache may exist: the cache may be behind. What follows from its absence
cannot be reverted, so it is read from the API server before.
"""

import asyncio
from collections.abc import AsyncIterator, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api, decide, extras, hardware
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.requests.render import missing_settings, model_cache
from dynamo_operator.requests.results import STATUS_LIMIT, named_config_maps, target
from dynamo_operator.requests.status import taken_graph
from dynamo_operator.requests.validate import request_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import is_subdomain
from dynamo_operator.shared.transforms import slim, slimmed
from kube_runtime.apply.result import controls
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.errors import Forbidden, NotFound, TooLarge
from kube_runtime.types.kinds import (
    ClusterRoleBinding,
    Job,
    Node,
    PersistentVolumeClaim,
    Pod,
    Subject,
    SubjectAccessReview,
    question,
)
from kube_runtime.types.meta import Key, Object, Resource, metadata_type

_UNTIL_THE_END = frozenset((decide.Stage.START, decide.Stage.PROFILING))
"""The state is not enough: a request that could not start is Failed, and may be starting right now."""


# Nodes are cluster-scoped, so no RoleBinding can grant access to them, and garbage collection would
# not delete a ClusterRoleBinding with its request. So the installation creates one, and the
# operator writes its subjects when such a Job starts, and again when a request ends or is deleted.
@dataclass(slots=True)
class GpuDiscoveryRbac:
    """The subjects of the ClusterRoleBinding of that name."""

    client: Client
    writer: Writer
    cache: Cache
    name: str
    _listed: set[str] | None = field(default=None, init=False)
    """None: not read yet."""

    async def admit(self, request: Request) -> str:
        """Add the ServiceAccount of the request's Job, and remove those that need it no longer.

        Returns why that is impossible, or "". Raises `Conflict` if another client wrote the subjects.
        """
        try:
            await self._write(self._searching(request))
        except (NotFound, Forbidden) as error:
            return f"profiling may not read nodes, which spec.enableGpuDiscovery requires: {error.message}"
        return ""

    async def withdraw(self) -> None:
        """Remove the ServiceAccounts of namespaces without GPU discovery.

        Sends no request if there is none to remove, except once after the start of the process. Raises
        `Conflict` if another client wrote the subjects.
        """
        desired = self._searching()
        if not self.name or (self._listed is not None and self._listed <= desired):
            return
        with suppress(NotFound, Forbidden):  # without the binding, nothing is granted
            await self._write(desired)
        self._listed = desired

    async def _write(self, desired: set[str]) -> None:
        key, name = Key("", self.name), names.PROFILING_SERVICE_ACCOUNT
        binding = await self.client.get(ClusterRoleBinding, key)
        subjects = [Subject("ServiceAccount", name, namespace) for namespace in sorted(desired)]
        if set(binding.subjects) != set(subjects):
            version = binding.metadata.resource_version
            body: Object = {
                "metadata": {"resourceVersion": version},
                "subjects": msgspec.to_builtins(subjects),
            }
            await self.writer.merge_patch(ClusterRoleBinding, key, body, uid=binding.metadata.uid)
        self._listed = desired

    def _searching(self, *requests: Request) -> set[str]:
        requests = (*requests, *self.cache.list(Request))
        searching = {request.metadata.namespace for request in requests if may_search(request)}
        return {namespace for namespace in searching if namespace not in self.writer.excluded}


def may_search(request: Request) -> bool:
    """Whether the Job of the request, which was accepted, discovers GPUs, or may start to."""
    record = api.recorded(request)
    has_ended = record is not None and (record.created or record.results)
    if request.spec is None or has_ended or decide.stage(request) not in _UNTIL_THE_END:
        return False
    spec = api.accepted_spec(request)
    return bool(spec.enable_gpu_discovery) and not spec.profiling_config.service_account_name


def has_searched(request: Request) -> bool:
    """Whether the Job of the request was to discover GPUs, and does not any more."""
    is_over = decide.is_active(request) and not may_search(request)
    return is_over and bool(api.accepted_spec(request).enable_gpu_discovery)


_CREATED = {"dynamographdeployments": "nvidia.com", "configmaps": ""}
"""Resource and API group of what the operator creates for a request."""

R = TypeVar("R", bound=Resource)

_JOB_SELECTOR = f"{labels.PROFILING_JOB},{labels.MANAGED_BY}={labels.MANAGER}"

_POD_METADATA = metadata_type(Pod)
_MOST_PODS = 20
"""Of one Job. It has one at a time, and few lose their node."""
_POD_BYTES = 1024 * 1024
"""Of the JSON of a pod or a Job, which is decoded with its spec."""
_CONFIG_MAP_BYTES = 4 * 1024 * 1024
"""Of the JSON of a ConfigMap: it stores 1 MiB, some characters of which the API server escapes."""

_OUTPUT_SELECTOR = f"{labels.REQUEST},{labels.MANAGED_BY}={labels.MANAGER}"


def request_informers(namespace: str) -> tuple[Informer[Any], ...]:
    """The informers of profiling Jobs, their pods and their output, selected by our labels."""
    return (
        Informer(Job, namespace=namespace, labels=_JOB_SELECTOR, transform=slimmed),
        Informer(api.JobPod, namespace=namespace, labels=labels.REQUEST, transform=slimmed),
        Informer(api.Output, namespace=namespace, labels=_OUTPUT_SELECTOR, transform=_reduced),
    )


def _reduced(output: api.Output) -> api.Output:
    """Keep only the profiler's status: results are large, and read once from the API server."""
    text = output.data.get(api.STATUS_FILE, "")
    kept = {api.STATUS_FILE: text} if text and len(text) <= STATUS_LIMIT else {}
    return api.Output(metadata=slim(output.metadata), data=kept)


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Reads the inputs of requests. `excluded` are the namespaces that other operators manage."""

    client: Client
    cache: Cache
    settings: RenderSettings
    excluded: Container[str]
    accepts_all: bool = False
    """The administrator accepts all requests in all namespaces."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, request: Request) -> decide.RequestInputs:
        """Read the inputs of the request's stage. Raises `OperatorError` if the API server cannot answer."""
        if not decide.is_active(request):
            return decide.RequestInputs()
        try:
            match decide.stage(request):
                case decide.Stage.VALIDATION:
                    return await self._to_validate(request)
                case decide.Stage.START:
                    return await self._to_start(request)
                case decide.Stage.PROFILING:
                    return await self._to_profile(request)
                case decide.Stage.DEPLOYMENT:
                    return await self._to_deploy(request)
                case decide.Stage.NOTHING:
                    return decide.RequestInputs()
        except TooLarge as error:
            return decide.RequestInputs(too_large=str(error))

    async def problems(self, request: Request, *, is_later: bool = False) -> tuple[str, ...]:
        """Problems of the spec, with the paths of v1beta1 if `is_later`, and of the objects that it names."""
        spec = request.spec
        if spec is None:
            return ("spec is required",)
        found = request_problems(request, self.settings)
        if is_later:
            from dynamo_operator.shared.written import Written  # only for clusters with two versions

            found = tuple(map(Written({}, {}).problem, found))
        problems = tuple(map(str, found))
        graph_key = target(request, spec)
        if refusal := await self.refusal(request, graph_key.namespace):
            return (*problems, refusal)  # more would reveal what is in that namespace
        return (*problems, *[problem async for problem in self._missing(request, spec)])

    # RBAC of the target namespace decides, each time the operator is about to write there: every
    # ServiceAccount of the request's namespace must be allowed to create what the operator would
    # create. The author of the request does not count: no object records the author where users cannot
    # forge it (docs/decisions/0028-cross-namespace.md).
    async def refusal(self, request: Request, namespace: str) -> str:
        """Why the request may not create anything in that namespace; "" if it may.

        Its present spec must name the namespace, as the accepted one does, this operator must manage it, and
        RBAC there must accept the request now.
        """
        source, spec = request.metadata.namespace, request.spec
        if namespace == source:
            return ""
        if spec is None or namespace != target(request, spec).namespace:
            return f"the spec was accepted for namespace {namespace}, which it no longer names"
        if namespace in self.excluded:
            return (
                f"spec.deploymentOverrides.namespace: another operator manages namespace {namespace} "
                "(expected a namespace that this one manages): remove the field, or name another namespace"
            )
        missing = [
            f"{resource}.{group}".rstrip(".")
            for resource, group in _CREATED.items()
            if not (self.accepts_all or await self._may_create(source, namespace, group, resource))
        ]
        if not missing:
            return ""
        return (
            f"spec.deploymentOverrides.namespace: namespace {namespace} does not accept graphs from "
            f"requests in {source} (expected a RoleBinding in {namespace} that allows the group "
            f"system:serviceaccounts:{source} to create {' and '.join(missing)}): remove the field, "
            f"or ask an administrator of {namespace}"
        )

    async def _may_create(self, source: str, namespace: str, group: str, resource: str) -> bool:
        if self.settings.restricted_namespace:
            return False
        attributes = {"group": group, "resource": resource, "verb": "create", "namespace": namespace}
        access = {
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{source}", "system:authenticated"],
            "resourceAttributes": attributes,
        }
        body = question(SubjectAccessReview.KIND, access)
        try:
            return (await self.client.create(SubjectAccessReview, body)).status.allowed
        except Forbidden:  # the operator cannot verify it, so nothing is accepted
            return False

    async def destination(
        self, request: Request, namespace: str, manifests: Iterable[Object]
    ) -> decide.Destination:
        """Read whether the namespace accepts the graph, and which of these ConfigMaps exist there."""
        if refusal := await self.refusal(request, namespace):
            return decide.Destination(namespace, refusal)
        mounted = [manifest["metadata"]["name"] for manifest in named_config_maps(manifests)]
        read = self._config_maps(namespace, mounted)
        return decide.Destination(namespace, config_maps={it.key.name: _reduced(it) async for it in read})

    async def surely(self, type_: type[R], key: Key) -> R | None:
        """The object from the cache, else from the API server; None if it does not exist."""
        return self.cache.get(type_, key) or await self.live(type_, key)

    async def live(self, type_: type[R], key: Key, most_bytes: int = _CONFIG_MAP_BYTES) -> R | None:
        """The object from the API server; None if it does not exist.

        Raises:
            TooLarge: it has more than `most_bytes` as JSON.
        """
        if not all(map(is_subdomain, key)):  # names in a status are not validated
            return None
        try:
            return await self.client.get(type_, key, most_bytes)
        except NotFound:
            return None

    async def _config_maps(self, namespace: str, names: Iterable[str]) -> AsyncIterator[api.Output]:
        for name in names:
            if config_map := await self.live(api.Output, Key(namespace, name)):
                yield config_map

    def _pods(self, request: Request) -> tuple[api.JobPod, ...]:
        name = names.label_value(request.metadata.name)
        pods = self.cache.list(api.JobPod, request.metadata.namespace)
        return tuple(pod for pod in pods if pod.metadata.labels.get(labels.REQUEST) == name)

    async def _pod_reports(self, key: Key, uid: str) -> decide.PodReports:
        # One object of all requests at a time: decoded, it may take 24 times its size.
        async with self._turn:
            job = await self.live(api.JobInFull, key, _POD_BYTES)
            if job is None or job.metadata.uid != uid:
                return decide.PodReports()
            told = decide.pod_reports(job, ())
            async for pod in self._live_pods(api.JobPodInFull, job):
                told = replace(told, digests=told.digests + decide.pod_reports(job, (pod,)).digests)
            return told

    async def _live_pods(self, type_: type[R], job: Resource) -> AsyncIterator[R]:
        """The pods that the Job controls, from the API server, also of an earlier operator's Job."""
        # Any user may put the label on pods, so the list has metadata only.
        pages = self.client.pages(
            _POD_METADATA, namespace=job.key.namespace, labels=f"job-name={job.key.name}"
        )
        own: list[Key] = []
        async for page in pages:
            own += [pod.key for pod in page.items if controls(job, pod)]
            if len(own) > _MOST_PODS:
                text = f"more than {_MOST_PODS} pods have the profiling Job as their controller"
                raise TooLarge(Job.KIND, job.key, text)
        for key in own:
            if pod := await self.live(type_, key, _POD_BYTES):
                yield pod

    async def _to_validate(self, request: Request) -> decide.RequestInputs:
        if request.spec is None or not await self._is_later(request):
            return decide.RequestInputs(problems=await self.problems(request))
        problems = await self.problems(request, is_later=True)
        from dynamo_operator.requests.validate_v1beta1 import search_problems  # as in `problems`

        given = extras.extras_of(request.metadata)
        nodes = await self._gpu_nodes() if hardware.missing(given.hardware) else ()
        complete = hardware.completed(given.hardware, nodes)
        own = map(str, search_problems(given.search_strategy, request.spec.backend))
        problems = (*problems, *own, *filter(None, (hardware.problem(complete),)))
        found = hardware.added(given.hardware, complete)
        return decide.RequestInputs(problems=problems, is_later=True, discovered=found)

    async def _is_later(self, request: Request) -> bool:
        if extras.SAVED not in request.metadata.annotations:
            return False  # conversion writes it for each request in v1beta1, as the search has a default
        stored = await self.client.get_raw(Request.KIND, request.key)
        return extras.last_in_v1beta1(stored["metadata"].get("managedFields") or ())

    async def _gpu_nodes(self) -> list[Node]:
        """The nodes with a label that says their GPUs; none if they may not be read."""
        pages = self.client.pages(Node, labels=hardware.PRODUCT)
        try:
            return [node async for page in pages for node in page.items]
        except Forbidden:
            return []

    async def _to_start(self, request: Request) -> decide.RequestInputs:
        job = await self.live(Job, job_key(request))
        is_edited = request.metadata.generation != api.accepted_generation(request)
        inputs = decide.RequestInputs()
        if job is None and is_edited:
            inputs = await self._to_validate(request)
        running = sorted(
            pod.metadata.name
            for pod in self._pods(request)
            if pod.status.phase not in ("Succeeded", "Failed")
        )
        if job is not None or is_edited or running:
            return replace(inputs, job=job, pods_left=tuple(running))
        output = await self.live(api.Output, output_key(request))
        spec, metadata = api.accepted_spec(request), request.metadata
        given, own = spec.profiling_config.config_map_ref, names.profiling_base(metadata.name, metadata.uid)
        read = self._config_maps(metadata.namespace, (given.name, own) if given else ())
        bases = {it.key.name: it async for it in read}
        missing = missing_settings(spec, self.settings)
        return decide.RequestInputs(output=output, config_maps=bases, missing_setting=missing)

    async def _to_profile(self, request: Request) -> decide.RequestInputs:
        job, key = await self.surely(Job, job_key(request)), output_key(request)
        own = job if job is not None and decide.is_job_of(request, job) else None
        end = decide.end_of(own) if own is not None else None
        if own is not None and end is None:
            output = self.cache.get(api.Output, key)
            return decide.RequestInputs(job=own, pods=self._pods(request), output=output)
        output, temporary = await self.live(api.Output, key), self._temporary(request, own)
        inputs = decide.RequestInputs(job=job, output=output, temporary=temporary)
        if own is None or end is None:
            return inputs
        if end.type == "Failed":
            pods = [slimmed(pod) async for pod in self._live_pods(api.JobPod, own)]
            return replace(inputs, pods=tuple(pods))
        if inputs.output is None:
            return inputs
        return replace(inputs, reports=await self._pod_reports(own.key, own.metadata.uid))

    async def _to_deploy(self, request: Request) -> decide.RequestInputs:
        graph_key, record = decide.target_of(request), api.recorded(request)
        is_created = record is None or record.created
        is_ours = is_created or extras.applies(request)
        graph = await self.surely(DynamoGraphDeployment, graph_key) if is_ours else None
        if is_created:
            return decide.RequestInputs(graph=graph)
        config_maps = request.status.additional_resources
        destination = await self.destination(request, graph_key.namespace, config_maps)
        return decide.RequestInputs(graph=graph, destination=destination)

    def _temporary(self, request: Request, job: Job | None) -> tuple[DynamoGraphDeployment, ...]:
        """The graphs that a profiler created for measurements."""
        # The request is their only owner. Any user who may patch a graph can write that, so they must also be
        # younger than the Job, or the request if the Job is gone: no user can change when they were created.
        began = (job or request).metadata.creation_timestamp or ""
        graphs = self.cache.list(DynamoGraphDeployment, request.metadata.namespace)
        return tuple(
            graph
            for graph in graphs
            if {request.metadata.uid} == {owner.uid for owner in graph.metadata.owner_references}
            and (graph.metadata.creation_timestamp or "") >= began
        )

    async def _missing(self, request: Request, spec: RequestSpec) -> AsyncIterator[str]:
        namespace, profiling = request.metadata.namespace, spec.profiling_config
        base = profiling.config_map_ref
        if base is not None and is_subdomain(base.name):
            try:
                config_map = await self.live(api.Output, Key(namespace, base.name))
            except TooLarge as error:
                yield f"ConfigMap {base.name}: {error.message}"
                return
            if config_map is None:
                yield f"ConfigMap {base.name} not found in namespace {namespace}"
            elif base.key not in config_map.data:
                yield f"key {base.key} not found in ConfigMap {base.name}"
        cached = model_cache(spec)
        claims = {"output PVC": profiling.output_pvc, "model cache PVC": cached and cached[0]}
        named = {use: claim for use, claim in claims.items() if claim and is_subdomain(claim)}
        for use, claim in named.items():
            if not await self.surely(PersistentVolumeClaim, Key(namespace, claim)):
                yield f"{use} {claim} not found in namespace {namespace}"
        if spec.auto_apply:
            graph_key = target(request, spec)
            graph = self.cache.get(DynamoGraphDeployment, graph_key)
            if graph is not None and not decide.is_of_request(request, graph):
                yield taken_graph(graph_key)


def job_key(request: Request) -> Key:
    """The key of the Job."""
    return Key(request.metadata.namespace, names.profiling_job(request.metadata.name))


def output_key(request: Request) -> Key:
    """The key of the results' ConfigMap."""
    return Key(request.metadata.namespace, names.profiling_output(request.metadata.name))


def request_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake a request when a pod, ConfigMap or graph with its labels changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        changed_labels = changed.metadata.labels
        name = changed_labels.get(labels.REQUEST, "")
        namespace = changed.metadata.namespace
        if isinstance(changed, DynamoGraphDeployment):
            namespace = changed_labels.get(labels.REQUEST_NAMESPACE, "")
        if not name or not namespace:
            return
        if cache.get(Request, Key(namespace, name)):
            yield Key(namespace, name)
            return
        for request in cache.list(Request, namespace):
            if names.label_value(request.metadata.name) == name:  # the label has a shortened name
                yield request.key

    types = (api.JobPod, api.Output, DynamoGraphDeployment)
    return tuple(Watches(type_, keys, labels.REQUEST) for type_ in types)
