"""The objects of a graph as a tree; the status of an object, once or until it is ready."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from dynamo_graphs.ages import short_age
from dynamo_graphs.members import members_of, tree_of
from dynamo_graphs.reader import STATED, Missing, Target, warn
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel, EndpointInfo
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.conditions import Stated, is_ready, summary
from dynamoctl.inspect.listing import overview, overview_json
from dynamoctl.inspect.why import print_explanation, readiness_code
from dynamoctl.options import Where
from dynamoctl.output import is_for_people, name_of, show_document
from dynamoctl.screen import Styled, redrawing, show, table
from dynamoctl.target import target_of
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ApiError, visible
from kube_runtime.types.meta import Kind, Object


def drawn(node: Object) -> Tree:
    """The tree, ready for printing."""
    mark = {True: ("✔ ", "green"), False: ("✘ ", "red"), None: ("  ", "")}[node["ready"]]
    line = Text.assemble(mark, (visible(node["kind"]), "bold"), " ", visible(node["name"]))
    if node["note"]:
        line.append(f"  {visible(node['note'])}", style="dim")
    tree = Tree(line, guide_style="dim")
    tree.children += map(drawn, node["children"])
    return tree


async def print_tree(name: str, where: Where, output: str) -> ExitCode:
    """Print what belongs to an object; 0 if it is ready."""
    async with target_of(name, where, STATED) as at:
        stated = await at.get()
        dependents = await members_of(at.reading.client, stated)
    version_of = at.reading.served_version
    node = tree_of(stated, dependents.by_owner, now=datetime.now(UTC), version_of=version_of)
    for note in dependents.unread:
        warn(note)
    if is_for_people(output):
        show(drawn(node))
    else:
        show_document(output, node, _names(node))
    return readiness_code(is_ready(stated))


def _names(node: Object) -> Iterator[str]:
    group, _, version = node["apiVersion"].rpartition("/")
    yield name_of(Kind(group, version, node["kind"]), node["name"])
    for child in node["children"]:
        yield from _names(child)


async def print_status(name: str, where: Where, output: str, *, watch: bool) -> ExitCode:
    """Print the status of an object; with `watch` again on each change until it is ready."""
    async with target_of(name, where, STATED) as at:
        stated = await at.get()
        from dynamo_graphs.explanation import absent_operator  # after the read, which may fail

        if gone := await absent_operator(at.reading, stated):
            if is_for_people(output):
                show(Styled(gone, "red").drawn(), "")
            else:
                warn(gone)
        if watch and not is_ready(stated):
            stated = await follow(at, output)
        else:
            _print_status(stated, output)
        if is_for_people(output) and isinstance(stated, DynamoGraphDeployment) and is_ready(stated):
            await _print_url(Target(at.reading, DynamoGraphDeployment, at.key))
        if is_for_people(output) and details(stated, datetime.now(UTC)):
            from dynamo_graphs.explanation import explained

            print()
            print_explanation(await explained(at.reading, stated))
    return readiness_code(is_ready(stated))


async def _print_url(at: Target[DynamoGraphDeployment]) -> None:
    """Where the graph answers, if it has a frontend."""
    from dynamo_graphs.frontend import url_of

    with suppress(ApiError, Missing):  # a graph may have no frontend
        show(visible(f"Frontend: {await url_of(at)} (from here: `dynamoctl port-forward {at.key.name}`)"))


async def follow(at: Target[Stated], output: str) -> Stated:
    """Print the object on each change, and return it once it is ready.

    A terminal shows its status in place, a pipe a line for each change.

    Raises: as `once_ready`.
    """
    from dynamo_graphs.watching import once_ready

    before = ""

    def seen(stated: Stated) -> None:
        nonlocal before
        if live is not None:
            live.update(Group(*_screen(stated)), refresh=True)
        elif not is_for_people(output):
            _print_status(stated, output)
        elif (line := progress(stated)) != before:
            print(line, flush=True)
            before = line

    with redrawing() if is_for_people(output) and sys.stdout.isatty() else nullcontext() as live:
        return await once_ready(at, seen)


def progress(stated: Stated) -> str:
    """Whether an object is ready, with the ready replicas of its services, or the reason, in one line."""
    known = overview_json(stated)
    counts = [
        f"{it['name']} {it['ready'] or 0}/{it['wanted']}" + (f" ({it['reason']})" if it["reason"] else "")
        for it in known["services"]
    ]
    current = None if known["ready"] else summary(stated)
    details = ", ".join(counts) or (current.reason if current else "")
    line = f"{stated.KIND.name} {stated.key}: {'ready' if known['ready'] else 'not ready'}"
    return visible(f"{line}: {details}" if details else line)


def _print_status(stated: Stated, output: str) -> None:
    if is_for_people(output):
        show(*_screen(stated))
    else:
        show_document(output, overview_json(stated), [name_of(stated.KIND, stated.metadata.name)])


def _screen(stated: Stated) -> list[RenderableType]:
    now = datetime.now(UTC)
    title, *rest = overview(stated, now=now)
    more = details(stated, now)
    return [title, *(["", *more] if more else ()), *rest]


_ENDPOINTS = ("POD", "STATE", "LOADED", "FAILURES", "LAST TRY", "MESSAGE")


def details(stated: Stated, now: datetime) -> list[RenderableType]:
    """What the status of a model or a request has beside conditions; nothing for other kinds."""
    if isinstance(stated, DynamoModel):
        return model_parts(stated, now)
    return [request_table(stated)] if isinstance(stated, DynamoGraphDeploymentRequest) else []


def load_state(endpoint: EndpointInfo, *, is_lora: bool) -> str:
    """The state of a model on an endpoint, in one to three words."""
    if endpoint.ready:
        return "loaded"
    if not is_lora:
        return "serves it"  # a base model is not loaded by requests
    if endpoint.unable:
        return "no LoRA API"
    if endpoint.fallback_covered:
        return "covered by workers"
    if endpoint.reloading:
        return "reloading"
    return "failed" if endpoint.failures else "pending"


def model_parts(model: DynamoModel, now: datetime) -> list[RenderableType]:
    """The parts of a screen: the model, and a row for each pod that may have loaded it."""
    spec, status = model.spec, model.status
    parts: list[RenderableType] = []
    if spec is not None:
        source = f" from {spec.source.uri}" if spec.source else ""
        parts.append(visible(f"{spec.model_name}: {spec.model_type} of {spec.base_model_name}{source}"))
    is_lora = spec is not None and spec.model_type == "lora"
    states = [(it, load_state(it, is_lora=is_lora)) for it in status.endpoints]
    states += [(it, "to be unloaded") for it in status.former_endpoints]
    rows = [
        (
            *(endpoint.pod_name or endpoint.address, state, endpoint.loaded_name or "-"),
            *(str(endpoint.failures), short_age(endpoint.last_attempt_time, now)),
            endpoint.message,
        )
        for endpoint, state in states
    ]
    if rows:
        parts += ["", table(_ENDPOINTS, rows)]
    return parts


def request_table(request: DynamoGraphDeploymentRequest) -> RenderableType:
    """The state, the profiling Job and the graph of a request."""
    spec, status = request.spec, request.status
    job, created = status.profiling_job_name, status.deployment
    lines = [
        ("Model", spec.model if spec else ""),
        ("Backend", status.backend or ""),
        ("State", status.state or "not reconciled yet"),
        ("Phase", status.profiling_phase or ""),
        ("Job", f"{job} (kubectl logs job/{job})" if job else ""),
        ("Graph", f"{created.name}: {created.state}" if created else ""),
        ("Message", status.message or ""),
    ]
    return table((), [line for line in lines if line[1]])
