"""Why objects are not ready."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyclopts import CycloptsError

from dynamo_graphs.reader import NOUNS, STATED, not_served, warn
from dynamo_operator.shared.conditions import Stated, is_ready
from dynamoctl.options import Where
from dynamoctl.output import is_for_people, name_of, show_document
from dynamoctl.screen import Styled, show
from dynamoctl.target import cluster, target_of
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import NotFound, visible
from kube_runtime.types.meta import Object

if TYPE_CHECKING:
    from dynamo_graphs.explanation import Explanation


async def print_reasons(
    name: str, where: Where, output: str, *, every: bool = False, everywhere: bool = False
) -> ExitCode:
    """Explain an object, or with `every` each object that is not ready; 0 if everything is ready.

    `every` leaves out components and scaling adapters of a graph: the graph names their causes.
    """
    if bool(name) == every:
        raise CycloptsError("expected either NAME or --all")
    if everywhere and not every:
        raise CycloptsError("--all-namespaces requires --all")
    if every:
        return await _why_all(where, output, everywhere=everywhere)
    async with target_of(name, where, STATED) as at:
        stated = await at.get()
        from dynamo_graphs.explanation import explained  # after the read, which may fail

        explanation = await explained(at.reading, stated)
    if is_for_people(output):
        print_explanation(explanation)
    else:
        show_document(output, _reasons_json(stated, explanation), [name_of(stated.KIND, at.key.name)])
    return readiness_code(is_ready(stated))


async def _why_all(where: Where, output: str, *, everywhere: bool) -> ExitCode:
    late: list[tuple[Stated, Explanation]] = []
    async with cluster(where) as at:
        reading, namespace = at.reading, "" if everywhere else at.namespace
        for type_ in STATED:
            try:
                every: Sequence[Stated] = await reading.all(type_, namespace=namespace)
            except NotFound:
                warn(str(not_served(type_)))
                continue
            for stated in every:
                if not is_ready(stated) and stated.metadata.controller is None:
                    from dynamo_graphs.explanation import explained

                    late.append((stated, await explained(reading, stated)))
    if not is_for_people(output):
        document = [_reasons_json(stated, explanation) for stated, explanation in late]
        show_document(output, document, (name_of(stated.KIND, stated.metadata.name) for stated, _ in late))
        return readiness_code(not late and not reading.unreadable)
    for stated, explanation in late:
        show(Styled(f"{NOUNS[type(stated)]} {stated.key}", "bold").drawn())
        print_explanation(explanation)
        print()
    summary = [f"{len(late)} not ready"] if late else []
    if reading.unreadable:
        summary.append(f"{len(reading.unreadable)} unreadable")
    print(", ".join(summary) or "All objects are ready.", file=sys.stderr)
    return readiness_code(not summary)


def print_explanation(explanation: "Explanation") -> None:
    """Print why an object is not ready, for people."""
    show(*map(visible, explanation.lines))


def _reasons_json(stated: Stated, explanation: "Explanation") -> Object:
    return {
        "kind": stated.KIND.name,
        "namespace": stated.metadata.namespace,
        "name": stated.metadata.name,
        "ready": is_ready(stated),
        "findings": explanation.findings,
        "advice": explanation.advice,
    }


def readiness_code(is_well: bool) -> ExitCode:
    """0 if all that was shown is ready."""
    return ExitCode.OK if is_well else ExitCode.PROBLEMS
