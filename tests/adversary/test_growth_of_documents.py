"""Rules, renderers and reports take time in proportion to what users write, whichever field it is in.

In each document one field at a time grows, by `growing_fields`. Measured are a whole review and a whole
reconcile without I/O; `growth` says how.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from adversary.growing_fields import Growing, growing_fields, grown
from adversary.growing_work import Act, diagnosing, harvesting, judging, placing, reconciling
from adversary.growth import Work, is_steep, is_suspect
from dynamo_operator import labels
from dynamo_operator.crds import RESOURCES
from kube_runtime.schema import resource_schema
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Object
from reviews.rows import component, graph, lora, request, worker
from specs import IMAGE

LETTERS, QUICK_SECONDS = 3000, 0.012
"""Of a field at the first size; and what is that quick at four times the size needs no closer look."""

NODES: Object = {"multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": "8"}}}
INGRESS: Object = {
    "enabled": True,
    "host": "chat",
    "hostSuffix": "example.com",
    "ingressControllerClassName": "nginx",
    "useVirtualService": True,
    "virtualServiceGateway": "istio-system/gateway",
}


def on_grove(document: Object) -> Object:
    metadata = {**document["metadata"], "annotations": {labels.WORKLOAD_PROVIDER: "grove"}}
    return {**document, "metadata": metadata}


def of_framework(name: str, *args: str) -> Object:
    main = {"image": IMAGE, "args": list(args) or [f"python3 -m dynamo.{name} --model m"]}
    return {**NODES, "backendFramework": name, "extraPodSpec": {"mainContainer": main}}


def on_nodes(name: str, *args: str) -> Object:
    """The worker's fields in a graph, which names the framework itself."""
    return {key: each for key, each in of_framework(name, *args).items() if key != "backendFramework"}


DOCUMENTS: dict[str, Object] = {
    "graph": graph({"w": worker(ingress=INGRESS)}),
    "graph on Grove": on_grove(graph({"w": worker(**on_nodes("sglang"))})),
    "component": component(ingress=INGRESS),
    "component on LeaderWorkerSets": component(**of_framework("vllm")),
    "request": request(),
    "model": lora("s3://bucket/path"),
    "scaling adapter": {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeploymentScalingAdapter",
        "metadata": {"name": "chat-w", "namespace": "prod"},
        "spec": {"replicas": 1, "dgdRef": {"name": "chat", "serviceName": "w"}},
    },
}
EMBEDDED_ONCE = "graph"
"""Fields of Kubernetes' own types grow in this document to the bottom, and in the others at the top."""
LONG = ("graph on Grove", "component")
"""Documents whose fields are those of another one, in another place."""
EACH = [
    pytest.param(name, marks=pytest.mark.long) if name in LONG else pytest.param(name) for name in DOCUMENTS
]
METADATA: Object = {
    "description": "What users write of an object's metadata.",
    "type": "object",
    "properties": {
        name: {"type": "object", "description": "", "additionalProperties": {"type": "string"}}
        for name in ("labels", "annotations")
    },
}


def schema_of(document: Object) -> Object:
    kind = next(each for each in RESOURCES if each.KIND.name == document["kind"])
    schema = resource_schema(kind)
    return {**schema, "properties": {**schema["properties"], "metadata": METADATA}}


def fields_of(name: str) -> list[Growing]:
    depth = 0 if name == EMBEDDED_ONCE else 2
    found = growing_fields(schema_of(DOCUMENTS[name]), depth=depth)
    return [each for each in found if each.path[0] not in ("apiVersion", "kind")]


def steep(act: Act, make: Callable[[int], Object]) -> bool:
    """Whether what is done with documents of a size takes more than in proportion to the size."""

    def prepared(size: int) -> Work:
        return act(make(size))

    return is_suspect(prepared, LETTERS, QUICK_SECONDS) and is_steep(prepared, LETTERS)


@pytest.mark.parametrize("name", [each for each in EACH if each.values != ("scaling adapter",)])
def test_a_review_takes_time_like_the_length_of_each_field(name: str) -> None:
    document = DOCUMENTS[name]
    grows = partial(grown, document, schema_of(document))
    assert [] == [each.name for each in fields_of(name) if steep(judging, partial(grows, each))]


@pytest.mark.parametrize("name", EACH)
def test_a_reconcile_takes_time_like_the_length_of_each_field(name: str) -> None:
    document = DOCUMENTS[name]
    grows = partial(grown, document, schema_of(document))
    assert [] == [each.name for each in fields_of(name) if steep(reconciling, partial(grows, each))]


def annotated(document: Object, key: str, piece: str, size: int) -> Object:
    value = piece * (size // len(piece))
    found = {**document["metadata"].get("annotations", {}), key: value}
    spec = {**document["spec"], "annotations": {key: value}}
    return {**document, "metadata": {**document["metadata"], "annotations": found}, "spec": spec}


@pytest.mark.parametrize("name", ["graph", "graph on Grove", "component"])
def test_an_annotation_that_is_read_costs_time_like_its_length(name: str) -> None:
    for key in sorted((labels.LABELS | labels.ANNOTATIONS) - {labels.WORKLOAD_PROVIDER}):
        for piece in ("a", "1,", '{"a":'):
            make = partial(annotated, DOCUMENTS[name], key, piece)
            assert not steep(judging, make), (key, piece)
            assert not steep(reconciling, make), (key, piece)


PIECES = ("a/", "python3 ", "python3 -m dynamo.{0} ", "; ", "'", "$(", "--tp ", "\\\n", "A=b ", "| && ")


def scripts(framework: str, size: int) -> Iterator[tuple[str, list[str]]]:
    """Arguments of that many letters: one long script, and many short ones."""
    start = f"python3 -m dynamo.{framework}"
    for piece in PIECES:
        some = piece.format(framework)
        many = some * (size // len(some))
        yield f"{some!r} before", [f"{many}; {start}"]
        yield f"{some!r} in the same word", [f"{many}{start}"]
        yield f"{some!r} after", [f"{start} {many}"]
        yield f"{some!r} as arguments", [start, *([some] * (size // 12))]


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("kind", ["component", "graph on Grove"])
def test_scripts_take_time_like_their_length(framework: str, kind: str) -> None:
    def made(number: int, size: int) -> Object:
        _, args = list(scripts(framework, size))[number]
        if kind == "component":
            return component(**of_framework(framework, *args))
        return on_grove(graph({"w": worker(**on_nodes(framework, *args))}))

    names = [each for each, _ in scripts(framework, 100)]
    numbers = range(len(names))
    assert [] == [names[each] for each in numbers if steep(reconciling, partial(made, each))]


def configured(form: str, size: int) -> Object:
    """A graph that is configured by a variable, with a text of that length in it."""
    arguments: Any = {
        "text": {"w": {"ServiceArgs": {"Resources": {"cpu": "1" * size}}}},
        "services": {f"s{number}": {"ServiceArgs": {}} for number in range(size // 12)},
        "arguments": {"w": {f"a{number}": number for number in range(size // 12)}},
        "brackets": "[" * size,
    }[form]
    value = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return graph({"w": worker()}, envs=[{"name": "DYN_DEPLOYMENT_CONFIG", "value": value}])


@pytest.mark.parametrize("form", ["text", "services", "arguments", "brackets"])
def test_a_configuration_in_a_variable_takes_time_like_its_length(form: str) -> None:
    assert not steep(judging, partial(configured, form))
    assert not steep(reconciling, partial(configured, form))


RESULT = "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec:\n  services:\n    w: {}\n"
RESULTS: dict[str, str] = {
    "ConfigMaps": "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: n{0}\n",
    "other documents": "---\nkind: Secret\nmetadata:\n  name: n{0}\n",
    "graphs": f"---\n{RESULT}",
    "services": "    w{0}: {{}}\n",
    "aliases": "    w{0}: &a{0} [*b]\n",
    "text": "{0}a:",
    "brackets": "[",
    "quotes": "'",
}


@pytest.mark.parametrize("piece", RESULTS)
def test_results_of_a_profiler_are_read_in_time_like_their_length(piece: str) -> None:
    def make(size: int) -> Work:
        return harvesting(RESULT + "".join(map(RESULTS[piece].format, range(size // 6))))

    assert not (is_suspect(make, LETTERS, QUICK_SECONDS) and is_steep(make, LETTERS))


def test_tolerations_of_a_request_are_joined_with_those_of_its_graph_in_linear_time() -> None:
    assert not (is_suspect(placing, 500, QUICK_SECONDS) and is_steep(placing, 500))


def lists_and_maps(size: int) -> Object:
    """A component in which all lists and maps of our own grow together."""
    document, schema = DOCUMENTS["component"], schema_of(DOCUMENTS["component"])
    many = [each for each in fields_of("component") if each.how in ("different items", "many keys")]
    for each in many:
        if each.path[0] == "spec" and len(each.path) <= _OWN_DEPTH:
            document = grown(document, schema, each, size // 4)
    return document


_OWN_DEPTH = 3


def test_lists_and_maps_that_grow_together_take_time_like_their_length() -> None:
    assert not steep(judging, lists_and_maps)
    assert not steep(reconciling, lists_and_maps)


def test_what_a_node_says_of_a_pod_takes_time_like_its_length() -> None:
    schema = msgspec.json.schema(Pod)
    whole = resolved(schema, schema["$defs"])
    pod: Object = {
        "metadata": {"name": "w-0", "namespace": "prod"},
        "spec": {"nodeName": "n1"},
        "status": {
            "phase": "Pending",
            "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}],
        },
    }
    fields = [each for each in growing_fields(whole) if each.path[0] in ("metadata", "status")]
    assert 20 < len(fields)
    grows = partial(grown, pod, whole)
    assert [] == [each.name for each in fields if steep(diagnosing, partial(grows, each))]


def resolved(schema: Any, parts: Object) -> Any:
    """A JSON schema of msgspec without references, and without the null of what may be absent."""
    if isinstance(schema, list):
        return [resolved(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if found := schema.get("$ref"):
        return resolved(parts[found.rpartition("/")[2]], parts)
    if found := schema.get("anyOf"):
        return resolved(next(each for each in found if each != {"type": "null"}), parts)
    return {key: resolved(each, parts) for key, each in schema.items() if key != "$defs"}


def test_a_rule_that_compares_everything_with_everything_would_be_found() -> None:
    def comparing(document: Object) -> Callable[[], object]:
        names = [each["name"] for each in document["spec"]["pvcs"]]
        return lambda: [one for one in names for two in names if one != two]

    document = DOCUMENTS["graph"]
    grows = partial(grown, document, schema_of(document))
    fields = {each.name: each for each in fields_of("graph")}
    make = partial(grows, fields["spec.pvcs of different items"])
    assert any(steep(comparing, make) for _ in range(10))
    assert "spec.restart.strategy.order of same items" in fields
