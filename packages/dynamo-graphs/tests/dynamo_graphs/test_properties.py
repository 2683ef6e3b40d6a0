"""What holds for every graph that the builders make."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_graphs import Graph

NAMES = st.from_regex(r"[A-Za-z][a-z0-9]{0,8}", fullmatch=True)
BACKENDS = st.sampled_from(["vllm", "sglang", "trtllm"])
MODELS = st.sampled_from(["Qwen/Qwen3-0.6B", "/models/mine", "org/name with space", "模型"])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
VARIABLES = st.dictionaries(st.from_regex(r"[A-Z]{3,8}_X", fullmatch=True), TEXT, max_size=3)
WORDS = st.sampled_from(["--max-model-len=8192", "--seed", "$(HOME)", "a b", '"'])
IMAGES = st.sampled_from(["registry.example.com/runtime:1", "runtime@sha256:" + "0" * 64])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 50),
        "gpus": st.integers(1, 16),
        "nodes": st.integers(1, 4),
        "env_from_secret": NAMES.map(str.lower),
        "env": VARIABLES,
        "args": st.lists(WORDS, max_size=3),
        "image": IMAGES,
    },
)
METHODS = st.sampled_from(["worker", "prefill", "decode"])
STEPS = st.lists(st.tuples(METHODS, BACKENDS, MODELS, OPTIONS, st.booleans()), max_size=4)


@st.composite
def graphs(draw: Callable[[st.SearchStrategy[object]], object]) -> Graph:
    routing = draw(st.sampled_from([None, "kv", "round-robin", "random"]))
    graph = Graph("g", namespace="ml").frontend(routing=routing)  # type: ignore[arg-type]
    steps = draw(STEPS)
    assert isinstance(steps, list)
    for number, (method, backend, model, options, has_lora) in enumerate(steps):
        add = getattr(graph, method)
        graph = add(f"Worker{number}", model=model, backend=backend, lora=has_lora, **options)
    if draw(st.booleans()):
        graph = graph.planner(interval_seconds=30)
    return graph


@settings(max_examples=60)
@given(graphs())
def test_a_graph_of_the_builders_has_no_problems_renders_and_survives_the_way_through_text(
    graph: Graph,
) -> None:
    assert () == graph.problems()
    kinds = [each["kind"] for each in graph.render()]
    assert kinds.count("DynamoComponentDeployment") == len(graph.spec.services)
    assert graph.svg().startswith("<svg ")
    again = Graph.from_yaml(graph.to_yaml())
    assert graph == again
    assert graph.to_yaml() == again.to_yaml()
    assert graph != again.with_spec(replicas=7)
