"""Draw a graph as SVG: a box for each service, with its model, its GPUs and its state.

Workers are on the right and all others on the left, so that no line crosses a box. A dashed line starts
at a planner. Texts of users are escaped, and cut at the width of a box.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from dynamo_graphs.ages import counted
from dynamo_graphs.services import Service, services
from dynamo_operator.component.api import ComponentSpec, is_worker
from dynamo_operator.component.framework import gpus
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import is_ready

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
        *(part for box in boxes for part in _drawn(box, has_status=bool(graph.status.conditions))),
        "</svg>",
    ]
    return "\n".join(parts)


def _boxes(graph: DynamoGraphDeployment) -> Sequence[_Box]:
    specs = graph.spec.services
    ordered = sorted(services(graph), key=lambda it: specs[it.name].component_type != "frontend")
    columns = ([it for it in ordered if is_worker(specs[it.name]) is works] for works in (False, True))
    return [
        _Box(service, specs[service.name], number, row)
        for number, column in enumerate(filter(None, columns))
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
    ready = service.ready_of_newest
    state, colour = counted(service.desired, "replica"), _UNKNOWN
    if has_status:
        state = f"{ready}/{service.desired} ready"
        colour = _READY if ready >= service.desired else _LATE
    if total := _gpus(service, spec):
        nodes = f", {spec.nodes} nodes" if spec.nodes > 1 else ""
        state = f"{state} · {counted(total, 'GPU')}{nodes}"
    yield f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
    yield f'<text class="t" x="{x + 12}" y="{y + 20}">{_text(service.name)}</text>'
    yield f'<text class="q" x="{x + 12}" y="{y + 38}">{_text(_model(spec) or role)}</text>'
    yield f'<circle cx="{x + 16}" cy="{y + 54}" r="4" fill="{colour}"/>'
    yield f'<text x="{x + 26}" y="{y + 58}">{_text(state)}</text>'


def _gpus(service: Service, spec: ComponentSpec) -> int:
    return gpus(spec) * spec.nodes * service.desired


def _model(spec: ComponentSpec) -> str:
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
    counts = f"{counted(len(all_services), 'service')}, {counted(total, 'GPU')}"
    if not graph.status.conditions:
        return counts
    late = sum(service.ready_of_newest < service.desired for service in all_services)
    progress = f"{len(all_services) - late} of {len(all_services)} services ready"
    return f"{counts}, {'ready' if is_ready(graph) else f'not ready ({progress})'}"


def _text(text: str, most: int = _LONGEST) -> str:
    shown = text if len(text) <= most else f"{text[: most - 1]}…"
    return escape("".join(character if character.isprintable() else "�" for character in shown))
