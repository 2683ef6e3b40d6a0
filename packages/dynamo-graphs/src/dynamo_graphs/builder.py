"""A DynamoGraphDeployment, built service by service."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, Self, Unpack, get_args

from dynamo_graphs.engines import ENGINES, Engine, Role, size_problems, worker_args
from dynamo_graphs.fields import GraphFields, PersistentVolumeClaim
from dynamo_graphs.objects import (
    Backend,
    InvalidObject,
    OfflineObject,
    ServiceOptions,
    wire_fields,
    with_fields,
    with_named,
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
        self._start(name, namespace, spec)

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
        wrong: list[Problem] = []
        fields = wire_fields(spec, self._schema(), "spec", wrong)
        return self._edited({**self._document, "spec": with_fields(self._part("spec"), fields)}, wrong)

    def pvc(
        self,
        name: str,
        *,
        size: str = "",
        storage_class: str = "",
        access_mode: str = "ReadWriteMany",
        retain: bool = False,
    ) -> Self:
        """The graph with a PersistentVolumeClaim, which services mount with `mounts` or use as `cache`.

        With a `size` and a `storage_class` the operator creates it, and deletes it with the graph unless
        `retain`. Without them it must exist. No field of v1beta1 creates a PVC: there, an annotation has it.
        """
        claim: PersistentVolumeClaim = {"name": name}
        if size or storage_class:
            claim["create"] = True
            claim["volume_access_mode"] = access_mode
        if size:
            claim["size"] = size
        if storage_class:
            claim["storage_class"] = storage_class
        if retain:
            claim["retain"] = True
        return self.with_spec(pvcs=with_named(self._part("spec").get("pvcs"), [claim]))

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
        """The graph with these fields of a service; None takes one away.

        A service that the graph does not have is added if an `image` or a `component_type` is given.

        Raises:
            InvalidObject: no such service, or the operator would refuse it; with all problems.
        """
        is_new = {"image", "component_type", "extra_pod_spec"} & options.keys()
        if name not in self._services() and not is_new:
            raise InvalidObject([self._no_service(name)])
        return self._with_service(name, options)

    def _with_service(self, name: str, *steps: ServiceOptions) -> Self:
        services, path = self._services(), f"{_SERVICES}.{name}"
        service = services.get(name) or {}
        if not isinstance(service, dict):
            raise InvalidObject(self._step_problems(self._document))
        schema = self._schema()["properties"]["services"]["additionalProperties"]
        wrong: list[Problem] = []
        for options in steps:
            service = with_options(service, options, schema, path, wrong)
        if not wrong:
            wrong += size_problems(service, path)
        return self._with_services({**services, name: service}, wrong)

    def _no_service(self, name: str) -> Problem:
        from dynamo_operator.shared.problems import nearest

        services = self._services()
        listing = f" (services: {', '.join(services) or 'none'})"
        message = f'service "{name}" not found{nearest(name, services) or listing}'
        return Problem(_SERVICES, message)

    def without(self, name: str) -> Self:
        """The graph without that service.

        Raises:
            InvalidObject: it has no such service.
        """
        services = self._services()
        if name not in services:
            raise InvalidObject([self._no_service(name)])
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
        return self._with_service(name, defaults, options)

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
            "extra_pod_spec": {"main_container": {"working_dir": engine.folder}},
        }
        if role:
            defaults["sub_component_type"] = role
        if lora:
            defaults["model_ref"] = {"name": model}
        if "args" in options and not isinstance(options["args"], str | bytes):
            options["args"] = [*defaults["args"], *options["args"]]
        return self._with_service(name, defaults, options)

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
        mount = {"name": "profile", "mount_path": folder, "read_only": True}
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
                "main_container": {
                    "working_dir": "/workspace/components/src/dynamo/planner",
                    "volume_mounts": [mount],
                },
                "volumes": [{"name": "profile", "config_map": {"name": profile}}],
            },
        }
        return self._with_service(name, defaults, options)

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
