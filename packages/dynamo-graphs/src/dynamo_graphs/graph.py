"""`Graph`: a DynamoGraphDeployment, built service by service."""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, Unpack, cast, get_args

import msgspec

from dynamo_graphs.objects import (
    ApiObject,
    Backend,
    GraphFields,
    InvalidObject,
    ObjectClient,
    ServiceOptions,
    client,
    misfits,
    over,
    wire_fields,
    with_fields,
    with_options,
)
from dynamo_graphs.others import ENGINES, Engine, Role, worker_args
from dynamo_operator.component.framework import LORA_VARIABLE
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
from dynamo_operator.shared.problems import Problem, ProblemKind
from kube_runtime.kind import Object

Routing = Literal["kv", "round-robin", "random"]
"""How a frontend chooses a worker: by cached prefixes, in turn, or at random."""

_SERVICES = "spec.services"
_NO_MODEL = re.compile(r"-|\s*$")
"""Values that an engine would not read as the name of a model."""

Seen = Callable[["Graph"], object]
"""A function that is called with the graph whenever it changes in the cluster, such as `print`."""


class Explanation(Protocol):
    """The state of a graph, the summary first, and advice."""

    @property
    def said(self) -> Sequence[str]: ...
    @property
    def advice(self) -> Sequence[str]: ...


class Logs(Protocol):
    """Log lines of pods; `unread` has the errors of pods whose log could not be read."""

    @property
    def unread(self) -> Sequence[str]: ...


class Scaled(Protocol):
    """What was written, as a sentence, and the obstacles that keep it from taking effect."""

    @property
    def said(self) -> str: ...
    @property
    def obstacles(self) -> Sequence[str]: ...


class Completion(Protocol):
    """A model's answer, and the seconds until its first token and its last."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def first_seconds(self) -> float | None: ...
    @property
    def seconds(self) -> float: ...


class ClusterClient(ObjectClient, Protocol):
    """A cluster. `dynamoctl.client.Cluster` implements it; a test compares the two."""

    def wait(
        self, graph: "Graph | str", *, seconds: float = 1200, seen: Seen | None = None
    ) -> "Graph": ...
    def why(self, graph: "Graph | str") -> Explanation: ...
    def logs(
        self, graph: "Graph | str", service: str = "", *, tail: int = 100, container: str = "main"
    ) -> Logs: ...
    def scale(self, graph: "Graph | str", service: str, replicas: int) -> Scaled: ...
    def delete(self, graph: "Graph | str", *, seconds: float = 300) -> None: ...
    def chat(
        self, graph: "Graph | str", prompt: str, *, model: str = "", max_tokens: int = 512
    ) -> Completion: ...


class AsyncClusterClient(Protocol):
    """A cluster for asynchronous programs, such as `dynamoctl.client.AsyncCluster`."""

    async def wait(
        self, graph: "Graph | str", *, seconds: float = 1200, seen: Seen | None = None
    ) -> "Graph": ...


class GraphActions(ApiObject):
    """Actions on a graph in a cluster: by default that of kubectl's current context.

    They need the package dynamoctl, else they raise `ImportError`. In Jupyter they work as they do elsewhere.
    """

    @property
    def _graph(self) -> "Graph":
        """The graph: `Graph` is the only subclass."""
        return cast("Graph", self)

    def wait(
        self,
        cluster: ClusterClient | None = None,
        *,
        seconds: float = 1200,
        seen: Seen | None = None,
    ) -> "Graph":
        """The graph with its status once it is ready; `seen=print` shows the progress, Jupyter draws it.

        Raises: `dynamoctl.client.NotReady` with the reason, after that many seconds.
        """
        seen = seen or redrawn(self._graph)
        return (cluster or _current()).wait(self._graph, seconds=seconds, seen=seen)

    async def wait_async(
        self,
        cluster: AsyncClusterClient | None = None,
        *,
        seconds: float = 1200,
        seen: Seen | None = None,
    ) -> "Graph":
        """As `wait`, for asynchronous programs; `cluster` is an `AsyncCluster` with a connection.

        Raises: as `wait`.
        """
        seen = seen or redrawn(self._graph)
        if cluster is not None:
            return await cluster.wait(self._graph, seconds=seconds, seen=seen)
        async with _connecting() as connected:
            return await connected.wait(self._graph, seconds=seconds, seen=seen)

    def why(self, cluster: ClusterClient | None = None) -> Explanation:
        """Why the graph is not ready, and what to do about it, as `dynamoctl why` prints it."""
        return (cluster or _current()).why(self._graph)

    def logs(
        self,
        service: str = "",
        cluster: ClusterClient | None = None,
        *,
        tail: int = 100,
        container: str = "main",
    ) -> Logs:
        """The last lines of each pod of the graph, or of one service; `tail` -1 is all of them."""
        return (cluster or _current()).logs(self._graph, service, tail=tail, container=container)

    def scale(self, service: str, replicas: int, cluster: ClusterClient | None = None) -> Scaled:
        """Set the replicas of a service in the cluster, as `dynamoctl scale` does; not in this object."""
        return (cluster or _current()).scale(self._graph, service, replicas)

    def delete(self, cluster: ClusterClient | None = None, *, seconds: float = 300) -> None:
        """Delete the graph in the cluster with all that belongs to it, and wait until it is gone.

        Raises: `TimeoutError` if it is still there after that many seconds.
        """
        (cluster or _current()).delete(self._graph, seconds=seconds)

    def chat(
        self,
        prompt: str,
        cluster: ClusterClient | None = None,
        *,
        model: str = "",
        max_tokens: int = 512,
    ) -> Completion:
        """The model's answer to a prompt, with its times; by default of the only model that is served."""
        return (cluster or _current()).chat(self._graph, prompt, model=model, max_tokens=max_tokens)


def redrawn(graph: "Graph") -> Seen | None:
    """In a Jupyter kernel, draw the graph and return a function that updates the drawing; else None.

    The display must be created in the thread of the cell; updates may come from other threads.
    """
    jupyter = sys.modules.get("IPython")
    if jupyter is None or not hasattr(jupyter.get_ipython(), "kernel"):
        return None
    shown: Seen = jupyter.display.display(graph, display_id=True).update
    return shown


def _current() -> ClusterClient:
    """The cluster of kubectl's current context.

    Raises:
        ImportError: dynamoctl is not installed.
    """
    return cast("ClusterClient", client("Cluster")())


def _connecting() -> AbstractAsyncContextManager[AsyncClusterClient]:
    """A connection to the cluster of kubectl's current context, for `async with`.

    Raises:
        ImportError: dynamoctl is not installed.
    """
    return cast("AbstractAsyncContextManager[AsyncClusterClient]", client("AsyncCluster")())


class Graph(GraphActions):
    """An inference graph: frontends, workers and planners that belong together.

    Each method returns a new graph, and raises `InvalidObject` for what would be refused:

        Graph("chat").frontend().worker("decode", model="Qwen/Qwen3-8B", gpus=2, backend="vllm")
    """

    TYPE = DynamoGraphDeployment

    def __init__(self, name: str, *, namespace: str = "", **spec: Unpack[GraphFields]) -> None:
        """A graph without services. `spec` are fields that all services share.

        Raises: InvalidObject.
        """
        self._start(name, namespace, wire_fields(DynamoGraphDeploymentSpec, spec, "spec"))

    @property
    def typed(self) -> DynamoGraphDeployment:
        """The whole graph as structs, with the defaults of the API server.

        Raises: InvalidObject, if a value has the wrong type.
        """
        return self._typed(DynamoGraphDeployment)

    @property
    def spec(self) -> DynamoGraphDeploymentSpec:
        """Its desired state as structs, such as `graph.spec.services["Worker"].replicas`."""
        return self.typed.spec

    @property
    def status(self) -> DynamoGraphDeploymentStatus:
        """Its observed state; empty unless it was read from a cluster."""
        return self.typed.status

    def with_spec(self, **spec: Unpack[GraphFields]) -> "Graph":
        """The graph with these fields of its spec; None takes a field away.

        Raises: InvalidObject.
        """
        fields = wire_fields(DynamoGraphDeploymentSpec, spec, "spec")
        return self._edited({**self._document, "spec": with_fields(self._part("spec"), fields)})

    def with_metadata(
        self,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> "Graph":
        """The graph with these labels and annotations beside its own, and in that namespace.

        Raises: InvalidObject.
        """
        metadata = self._part("metadata")
        for key, given in (("labels", labels), ("annotations", annotations)):
            if given:
                metadata[key] = {**(metadata.get(key) or {}), **given}
        if namespace is not None:
            metadata["namespace"] = namespace
        return self._edited({**self._document, "metadata": metadata})

    def service(self, name: str, **options: Unpack[ServiceOptions]) -> "Graph":
        """The graph with that service, or with these fields of the one that it has; None takes a field away.

        Raises: InvalidObject.
        """
        services, path = self._services(), f"{_SERVICES}.{name}"
        current = services.get(name) or {}
        if not isinstance(current, dict):
            raise InvalidObject(self._step_problems(self._document))
        service = with_options(current, options, path)
        return self._with_services({**services, name: service}, misfits(dict(options), path))

    def without(self, name: str) -> "Graph":
        """The graph without that service.

        Raises:
            InvalidObject: it has no such service.
        """
        services = self._services()
        if name not in services:
            from dynamo_operator.shared.problems import nearest

            message = f'service "{name}" not found{nearest(name, services)}'
            raise InvalidObject([Problem(_SERVICES, message)])
        return self._with_services(
            {key: service for key, service in services.items() if key != name}
        )

    def frontend(
        self,
        name: str = "Frontend",
        *,
        routing: Routing | None = None,
        backend: Backend = "vllm",
        **options: Unpack[ServiceOptions],
    ) -> "Graph":
        """The graph with a frontend: the HTTP server in the form of OpenAI's, which routes to workers.

        Its default image is that of the backend. Without `routing` the runtime decides, today in turn.

        Raises: InvalidObject.
        """
        path = self._new(name)
        env = (
            {}
            if routing is None
            else {"DYN_ROUTER_MODE": _one_of(routing, get_args(Routing), path)}
        )
        defaults: ServiceOptions = {
            "component_type": "frontend",
            "replicas": 1,
            "image": _engine(backend, path).image,
            "env": env,
        }
        return self.service(name, **over(defaults, options))

    def worker(
        self,
        name: str = "Worker",
        *,
        model: str,
        role: Role = "",
        backend: Backend = "vllm",
        lora: bool = False,
        **options: Unpack[ServiceOptions],
    ) -> "Graph":
        """The graph with a worker, which computes the answers of `model`; one GPU, unless `gpus` says more.

        The engine's parallelism follows from `gpus` and `nodes`. `role` is "" for a worker that does prefill
        and decode. `lora` lets DynamoModels load LoRAs into it. `args` are added to the engine's own.

        Raises: InvalidObject.
        """
        path = self._new(name)
        engine = _engine(backend, path)
        _one_of(role, get_args(Role), path)
        if _NO_MODEL.match(str(model)):
            message = f'invalid model "{model}" (expected a name, for example "Qwen/Qwen3-0.6B")'
            raise InvalidObject([Problem(path, message)])
        gpus, nodes = _count(options.get("gpus", 1)), _count(options.get("nodes", 1))
        args = worker_args(engine, model, role, gpus=gpus, nodes=nodes)
        defaults: ServiceOptions = {
            "component_type": "worker",
            "replicas": 1,
            "gpus": 1,
            "image": engine.image,
            "command": engine.command,
            "args": [*args, *(engine.lora if lora else ())],
            "env": {LORA_VARIABLE: "true"} if lora else {},
            "extra_pod_spec": {"mainContainer": {"workingDir": engine.folder}},
        }
        given = over(defaults, options)
        if role:
            given.setdefault("sub_component_type", role)
        if lora:
            from dynamo_operator.component.api import ModelReference

            given.setdefault("model_ref", ModelReference(model))
        return self.service(name, **given)

    def prefill(
        self,
        name: str = "Prefill",
        *,
        model: str,
        backend: Backend = "vllm",
        lora: bool = False,
        **options: Unpack[ServiceOptions],
    ) -> "Graph":
        """The graph with a worker that computes prompts, for workers that `decode`. See `worker`.

        Raises: InvalidObject.
        """
        return self.worker(name, model=model, role="prefill", backend=backend, lora=lora, **options)

    def decode(
        self,
        name: str = "Decode",
        *,
        model: str,
        backend: Backend = "vllm",
        lora: bool = False,
        **options: Unpack[ServiceOptions],
    ) -> "Graph":
        """The graph with a worker that computes answers, of prompts that `prefill` computed. See `worker`.

        Raises: InvalidObject.
        """
        return self.worker(name, model=model, role="decode", backend=backend, lora=lora, **options)

    def planner(
        self,
        name: str = "Planner",
        *,
        profile: str = "planner-profile-data",
        interval_seconds: int = 60,
        backend: Backend = "vllm",
        **options: Unpack[ServiceOptions],
    ) -> "Graph":
        """The graph with a planner, which sets the replicas of the workers every `interval_seconds`.

        `profile` is the ConfigMap with the results of profiling.

        Raises: InvalidObject.
        """
        path = self._new(name)
        folder = "/workspace/profiling_results"
        mount = {"name": "profile", "mountPath": folder, "readOnly": True}
        defaults: ServiceOptions = {
            "component_type": "planner",
            "replicas": 1,
            "image": _engine(backend, path).image,
            "command": ("python3", "-m", "planner_sla"),
            "args": (
                "--environment=kubernetes",
                f"--backend={backend}",
                f"--adjustment-interval={interval_seconds}",
                f"--profile-results-dir={folder}",
            ),
            "extra_pod_spec": {
                "mainContainer": {
                    "workingDir": "/workspace/components/src/dynamo/planner",
                    "volumeMounts": [mount],
                },
                "volumes": [{"name": "profile", "configMap": {"name": profile}}],
            },
        }
        return self.service(name, **over(defaults, options))

    def svg(self) -> str:
        """A drawing of its services with their GPUs, and of their state if it was read from a cluster."""
        from dynamo_graphs.drawing import graph_svg

        return graph_svg(self.typed)

    def __repr__(self) -> str:
        from dynamo_graphs.drawing import summary

        try:
            return f"<Graph {self.name}: {summary(self.typed)}>"
        except ValueError:  # a document with problems
            return super().__repr__()

    def _repr_html_(self) -> str:
        return self.svg()

    def _services(self) -> Object:
        services = self._part("spec").get("services")
        if services is None or isinstance(services, dict):
            return dict(services or {})
        raise InvalidObject(self._step_problems(self._document))

    def _with_services(self, services: Object, wrong: Iterable[Problem] = ()) -> "Graph":
        spec = {**self._part("spec"), "services": services}
        return self._edited({**self._document, "spec": spec}, wrong)

    def _new(self, name: str) -> str:
        """The path of a new service.

        Raises: InvalidObject.
        """
        path = f"{_SERVICES}.{name}"
        if name in self._services():
            message = f'duplicate service "{name}" (to change it, use `service`)'
            raise InvalidObject([Problem(path, message, ProblemKind.DUPLICATE)])
        return path

    def _step_problems(self, document: Object) -> tuple[Problem, ...]:
        """The problems of its schema, else those of its rules, except that a service is missing."""
        from dynamo_operator.crds import defaulted
        from dynamo_operator.graph.validate import graph_problems
        from dynamo_operator.settings import installed_settings

        if problems := super()._step_problems(document):
            return problems
        graph = msgspec.convert(defaulted(document), DynamoGraphDeployment)
        return tuple(
            problem
            for problem in graph_problems(graph, installed_settings())
            if graph.spec.services
            or (problem.path, problem.kind) != (_SERVICES, ProblemKind.REQUIRED)
        )


def _engine(backend: str, path: str) -> Engine:
    return ENGINES[_one_of(backend, ENGINES, path, noun="backend")]


def _one_of(value: str, options: Collection[str], path: str, noun: str = "value") -> str:
    """The value, if it is one of the options.

    Raises: InvalidObject.
    """
    if value not in options:
        expected = ", ".join(f'"{option}"' for option in options)
        message = f'unsupported {noun} "{value}" (expected one of {expected})'
        raise InvalidObject([Problem(path, message, ProblemKind.NOT_SUPPORTED)])
    return value


def _count(value: object) -> int:
    """A number of GPUs or nodes; 1 for an invalid one, which validation reports."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count and isinstance(value, int) else 1
