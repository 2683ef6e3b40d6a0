"""`Graph`: a DynamoGraphDeployment, built service by service."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Literal, Unpack, get_args

import msgspec

from dynamo_graphs.actions import GraphActions
from dynamo_graphs.objects import (
    Backend,
    GraphFields,
    InvalidObject,
    ServiceOptions,
    misfits,
    over,
    wire_fields,
    with_fields,
    with_options,
)
from dynamo_graphs.others import ENGINES, Engine, Role, worker_args
from dynamo_operator.component.api import ComponentSpec, is_worker
from dynamo_operator.component.framework import LORA_VARIABLE, gpus
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
from dynamo_operator.graph.status import Service, services
from dynamo_operator.shared.conditions import is_ready
from dynamo_operator.shared.problems import Problem, ProblemKind
from kube_runtime.kind import Object

_WIDTH, _HEIGHT, _GAP, _LEFT, _TOP = 230, 74, 18, 20, 52
_LONGEST = 30
"""Characters of a line in a box."""

_READY, _LATE, _UNKNOWN = "#2e7d32", "#c62828", "#757575"
_STYLE = "".join(
    f".dynamo-graph {rule}"  # of this drawing only: in a notebook it is a part of the page
    for rule in (
        "text{font-family:system-ui,sans-serif;font-size:12px;fill:#1b1b1b}",
        "text.t{font-weight:600;font-size:13px}",
        "text.q{fill:#555}",
        "rect{fill:#f5f7fa;stroke:#90a4ae}",
        "rect.b{fill:#fff;stroke:none}",
        "path{fill:none;stroke:#90a4ae}",
        "path.p{stroke-dasharray:4 4}",
    )
)
_LINE_CLASSES = {"frontend": "", "planner": ' class="p"'}
"""CSS classes of the lines to workers, by the type of the service where they start."""
_MODEL_FLAGS = ("--model", "--model-path", "--served-model-name")


@dataclass(frozen=True, slots=True)
class _Box:
    """A service and its position."""

    service: Service
    spec: ComponentSpec
    column: int
    row: int

    @property
    def left(self) -> int:
        return _LEFT + self.column * (_WIDTH + 3 * _GAP)

    @property
    def top(self) -> int:
        return _TOP + self.row * (_HEIGHT + _GAP)


def graph_svg(graph: DynamoGraphDeployment) -> str:
    """Draw a graph. Its state is that of the newest spec."""
    boxes = _boxes(graph)
    rows = max((box.row for box in boxes), default=0) + 1
    columns = max((box.column for box in boxes), default=0) + 1
    width = 2 * _LEFT + columns * _WIDTH + (columns - 1) * 3 * _GAP
    height = _TOP + rows * (_HEIGHT + _GAP)
    title = f"{graph.metadata.name}: {summary(graph)}"
    size = f'width="{width}" height="{height}"'
    head = '<svg xmlns="http://www.w3.org/2000/svg" class="dynamo-graph" role="img"'
    parts = [
        f'{head} {size} viewBox="0 0 {width} {height}">',
        f"<title>{_text(title, len(title))}</title><style>{_STYLE}</style>",
        f'<rect class="b" {size}/>',
        f'<text class="t" x="{_LEFT}" y="30">{_text(title, 4 * _LONGEST)}</text>',
        *_lines(boxes),
        *(part for box in boxes for part in _drawn(box, has_status=_has_status(graph))),
        "</svg>",
    ]
    return "\n".join(parts)


def _boxes(graph: DynamoGraphDeployment) -> Sequence[_Box]:
    specs = graph.spec.services
    ordered = sorted(
        services(graph), key=lambda service: specs[service.name].component_type != "frontend"
    )
    workers = [service for service in ordered if is_worker(specs[service.name])]
    others = [service for service in ordered if not is_worker(specs[service.name])]
    columns = [column for column in (others, workers) if column]
    return [
        _Box(service, specs[service.name], number, row)
        for number, column in enumerate(columns)
        for row, service in enumerate(column)
    ]


def _lines(boxes: Sequence[_Box]) -> Iterator[str]:
    """Lines from frontends, which route to workers, and from planners, which scale them."""
    for start in boxes:
        for end in boxes:
            if start.spec.component_type in _LINE_CLASSES and is_worker(end.spec):
                x, y = start.left + _WIDTH, start.top + _HEIGHT // 2
                to = end.top + _HEIGHT // 2
                middle = (x + end.left) // 2
                curve = f"M{x} {y}C{middle} {y} {middle} {to} {end.left} {to}"
                yield f'<path{_LINE_CLASSES[start.spec.component_type]} d="{curve}"/>'


def _drawn(box: _Box, *, has_status: bool) -> Iterator[str]:
    service, spec = box.service, box.spec
    role = spec.sub_component_type or spec.component_type or "component"
    x, y = box.left, box.top
    state, colour = _state(service, has_status=has_status)
    yield f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
    yield f'<text class="t" x="{x + 12}" y="{y + 20}">{_text(service.name)}</text>'
    yield f'<text class="q" x="{x + 12}" y="{y + 38}">{_text(_model(spec) or role)}</text>'
    yield f'<circle cx="{x + 16}" cy="{y + 54}" r="4" fill="{colour}"/>'
    yield f'<text x="{x + 26}" y="{y + 58}">{_text(f"{state}{_devices(service, spec)}")}</text>'


def _state(service: Service, *, has_status: bool) -> tuple[str, str]:
    if not has_status:
        return f"{_counted(service.desired, 'replica')}", _UNKNOWN
    ready = service.ready_of_newest
    return f"{ready}/{service.desired} ready", _READY if ready >= service.desired else _LATE


def _gpus(service: Service, spec: ComponentSpec) -> int:
    return gpus(spec) * spec.nodes * service.desired


def _devices(service: Service, spec: ComponentSpec) -> str:
    total = _gpus(service, spec)
    nodes = f", {spec.nodes} nodes" if spec.nodes > 1 else ""
    return f" · {total} GPU{'' if total == 1 else 's'}{nodes}" if total else ""


def _model(spec: ComponentSpec) -> str:
    """The model of a worker: its reference, else that of its flags."""
    if spec.model_ref is not None:
        return spec.model_ref.name
    main = (spec.extra_pod_spec or {}).get("mainContainer")
    args = main.get("args") if isinstance(main, dict) else None
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    pairs = pairwise(words)
    return next((value for flag, value in pairs if flag in _MODEL_FLAGS), "")


def summary(graph: DynamoGraphDeployment) -> str:
    """Summarize a graph: its services, its GPUs, and how many services are ready."""
    all_services = services(graph)
    total = sum(_gpus(service, graph.spec.services[service.name]) for service in all_services)
    counts = f"{_counted(len(all_services), 'service')}, {_counted(total, 'GPU')}"
    if not _has_status(graph):
        return counts
    late = sum(service.ready_of_newest < service.desired for service in all_services)
    progress = f"{len(all_services) - late} of {len(all_services)} services ready"
    return f"{counts}, {'ready' if is_ready(graph) else f'not ready ({progress})'}"


def _has_status(graph: DynamoGraphDeployment) -> bool:
    return bool(graph.status.conditions)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _text(text: str, most: int = _LONGEST) -> str:
    shown = text if len(text) <= most else f"{text[: most - 1]}…"
    return escape("".join(character if character.isprintable() else "�" for character in shown))


Routing = Literal["kv", "round-robin", "random"]
"""How a frontend chooses a worker: by cached prefixes, in turn, or at random."""

_SERVICES = "spec.services"
_NO_MODEL = re.compile(r"-|\s*$")
"""Values that an engine would not read as the name of a model."""


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

        return graph_svg(self.typed)

    def __repr__(self) -> str:

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
