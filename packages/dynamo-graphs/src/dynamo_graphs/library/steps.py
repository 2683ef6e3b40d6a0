"""The problems of a graph that is being built: all but what the next steps may bring."""

import msgspec

from dynamo_graphs.api.defaults import defaulted
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.library.circumstances import installed_settings
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.graph import graph_problems
from dynamo_graphs.validation.schema import schema_problems
from kube_runtime.kind import Object


def graph_step_problems(document: Object) -> tuple[Problem, ...]:
    """The problems of its schema, else those of its rules, but that it has no service."""
    if problems := schema_problems(document):
        return problems
    graph = msgspec.convert(defaulted(document), DynamoGraphDeployment)
    has_services = bool(graph.spec.services)
    return tuple(
        each
        for each in graph_problems(graph, installed_settings())
        if has_services or (each.path, each.kind) != ("spec.services", ProblemKind.REQUIRED)
    )
