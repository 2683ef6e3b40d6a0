"""A DynamoGraphDeployment, built service by service."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, Self, Unpack, get_args

from dynamo_graphs.engines import ENGINES, Engine, Role, worker_args
from dynamo_graphs.objects import (
    Backend,
    GraphFields,
    InvalidObject,
    OfflineObject,
    ServiceOptions,
    misfits,
    over,
    wire_fields,
    with_fields,
    with_options,
)
from dynamo_operator.component.framework import LORA_VARIABLE
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
from dynamo_operator.shared.problems import Problem, ProblemKind
from kube_runtime.types.meta import Object, from_plain

Routing = Literal["kv", "round-robin", "random"]
"""How a frontend chooses a worker: by cached prefixes, in turn, or at random."""

_SERVICES = "spec.services"
_NO_MODEL = re.compile(r"-|\s*$")
"""Values that an engine would not read as the name of a model."""


class GraphBuilder(OfflineObject):
    """The part of `Graph` that needs no cluster: its fields, its services, its drawing."""

    TYPE = DynamoGraphDeployment

    def __init__(self, name: str, *, namespace: str = "", **spec: Unpack[GraphFields]) -> None:
        """A graph without services. `spec` are fields that all services share."""
        self._start(name, namespace, wire_fields(DynamoGraphDeploymentSpec, spec, "spec"))

    @property
    def typed(self) -> DynamoGraphDeployment:
        """The whole graph as structs, with the defaults of the API server."""
        return self._typed(DynamoGraphDeployment)

    @property
    def spec(self) -> DynamoGraphDeploymentSpec:
        """Its desired state as structs, such as `graph.spec.services["Worker"].replicas`."""
        return self.typed.spec

    @property
    def status(self) -> DynamoGraphDeploymentStatus:
        """Its observed state; empty unless it was read from a cluster."""
        return self.typed.status

    def with_spec(self, **spec: Unpack[GraphFields]) -> Self:
        """The graph with these fields of its spec; None takes one away."""
        fields = wire_fields(DynamoGraphDeploymentSpec, spec, "spec")
        return self._edited({**self._document, "spec": with_fields(self._part("spec"), fields)})

    def with_metadata(
        self,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Self:
        """The graph with these labels and annotations beside its own, and in that namespace."""
        metadata = self._part("metadata")
        for key, given in (("labels", labels), ("annotations", annotations)):
            if given:
                metadata[key] = {**(metadata.get(key) or {}), **given}
        if namespace is not None:
            metadata["namespace"] = namespace
        return self._edited({**self._document, "metadata": metadata})

    def service(self, name: str, **options: Unpack[ServiceOptions]) -> Self:
        """The graph with that service, or with these fields of the one that it has; None takes one away."""
        services, path = self._services(), f"{_SERVICES}.{name}"
        current = services.get(name) or {}
        if not isinstance(current, dict):
            raise InvalidObject(self._step_problems(self._document))
        service = with_options(current, options, path)
        return self._with_services({**services, name: service}, misfits(dict(options), path))

    def without(self, name: str) -> Self:
        """The graph without that service.

        Raises:
            InvalidObject: it has no such service.
        """
        services = self._services()
        if name not in services:
            from dynamo_operator.shared.problems import nearest

            message = f'service "{name}" not found{nearest(name, services)}'
            raise InvalidObject([Problem(_SERVICES, message)])
        return self._with_services({key: service for key, service in services.items() if key != name})

    def frontend(
        self,
        name: str = "Frontend",
        *,
        routing: Routing | None = None,
        backend: Backend = "vllm",
        **options: Unpack[ServiceOptions],
    ) -> Self:
        """The graph with a frontend: the HTTP server in the form of OpenAI's, which routes to workers.

        Its default image is that of the backend. Without `routing` the runtime decides, today in turn.
        """
        path = self._new(name)
        env = {}
        if routing is not None:
            env["DYN_ROUTER_MODE"] = _one_of(routing, get_args(Routing), path)
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
    ) -> Self:
        """The graph with a worker, which computes the answers of `model`; one GPU, unless `gpus` says more.

        The engine's parallelism follows from `gpus` and `nodes`. `role` is "" for a worker that does prefill
        and decode. `lora` lets DynamoModels load LoRAs into it. `args` are added to the engine's own.
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
    ) -> Self:
        """The graph with a worker that computes prompts, for workers that `decode`. See `worker`."""
        return self.worker(name, model=model, role="prefill", backend=backend, lora=lora, **options)

    def decode(
        self,
        name: str = "Decode",
        *,
        model: str,
        backend: Backend = "vllm",
        lora: bool = False,
        **options: Unpack[ServiceOptions],
    ) -> Self:
        """The graph with a worker that computes answers, of prompts that `prefill` computed. See `worker`."""
        return self.worker(name, model=model, role="decode", backend=backend, lora=lora, **options)

    def planner(
        self,
        name: str = "Planner",
        *,
        profile: str = "planner-profile-data",
        interval_seconds: int = 60,
        backend: Backend = "vllm",
        **options: Unpack[ServiceOptions],
    ) -> Self:
        """The graph with a planner, which sets the replicas of the workers every `interval_seconds`.

        `profile` is the ConfigMap with the results of profiling.
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

    def _with_services(self, services: Object, wrong: Iterable[Problem] = ()) -> Self:
        spec = {**self._part("spec"), "services": services}
        return self._edited({**self._document, "spec": spec}, wrong)

    def _new(self, name: str) -> str:
        path = f"{_SERVICES}.{name}"
        if name in self._services():
            message = f'duplicate service "{name}" (to change it, use `service`)'
            raise InvalidObject([Problem(path, message, ProblemKind.DUPLICATE)])
        return path

    def _step_problems(self, document: Object) -> tuple[Problem, ...]:
        """The problems of its schema, else those of its rules, except that a service is missing."""
        from dynamo_graphs.offline import installed_settings
        from dynamo_operator.crds import defaulted
        from dynamo_operator.graph.validate import graph_problems

        if problems := super()._step_problems(document):
            return problems
        graph = from_plain(defaulted(document), DynamoGraphDeployment)
        return tuple(
            problem
            for problem in graph_problems(graph, installed_settings())
            if graph.spec.services or (problem.path, problem.kind) != (_SERVICES, ProblemKind.REQUIRED)
        )


def _engine(backend: str, path: str) -> Engine:
    return ENGINES[_one_of(backend, ENGINES, path, noun="backend")]


def _one_of(value: str, options: Collection[str], path: str, noun: str = "value") -> str:
    if value not in options:
        expected = ", ".join(f'"{option}"' for option in options)
        message = f'unsupported {noun} "{value}" (expected one of {expected})'
        raise InvalidObject([Problem(path, message, ProblemKind.NOT_SUPPORTED)])
    return value


def _count(value: object) -> int:
    """A number of GPUs or nodes; 1 for an invalid one, which validation reports."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count and isinstance(value, int) else 1
