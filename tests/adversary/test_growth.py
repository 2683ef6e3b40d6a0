"""Patterns take time in proportion to their text; `growth` says how that is measured.

No pattern is listed by hand: they are found in all modules, those of the command line too, so a new one is
measured automatically. Documents and scripts are in `test_growth_of_documents.py`.

Documents that once blocked the operator for seconds or hours are validated and rendered at once: the best of
three runs, in processor time of this thread, takes at most a tenth of what they cost before.
"""

import re
from collections.abc import Callable
from functools import partial

import pytest

from adversary.growth import Work, is_found_steep, is_steep, seconds
from adversary.hostile_texts import hostile_texts, patterns
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from dynamoctl.inspect.report import redacted, redacted_text
from kube_runtime.types.meta import Object
from reviews.asking import verdict
from reviews.rows import component, graph, with_service, worker
from specs import IMAGE, a_graph

PATTERNS = patterns()
LETTERS, LONGER, SLOW_SECONDS = 3000, 4000, 0.001
"""Of a text for a pattern: at the first size the square is seen, from the second on the slope is taken."""


@pytest.mark.parametrize("where", PATTERNS)
def test_a_pattern_takes_time_like_the_length_of_its_text(where: str) -> None:
    pattern, uses = PATTERNS[where]
    for text in hostile_texts(pattern, LETTERS):
        for use in uses:
            if seconds(partial(use, text), runs=2) < SLOW_SECONDS:
                continue
            body = text[:-1]

            def longer(size: int, body: str = body, use: Callable[[str], object] = use) -> Work:
                grown = body * (size // len(body)) + "\x00"
                return lambda: use(grown)

            assert not is_steep(longer, LONGER), text[:40]


def test_a_pattern_that_goes_back_and_forth_would_be_found() -> None:
    """The patterns that this test is for, as they were."""
    old = (
        re.compile(r"(\S*/)?python[0-9.]*\s+[^|&;]*dynamo\.trtllm", re.ASCII),
        re.compile(r"python[0-9.]*\s[^|&;\n'\"]*dynamo\.vllm[^|&;\n'\"]*\Z", re.ASCII),
    )
    for pattern in old:

        def longer(size: int, text: str, pattern: re.Pattern[str] = pattern) -> Work:
            grown = text[:size] + "\x00"
            return lambda: pattern.search(grown)

        texts = hostile_texts(pattern, LETTERS)
        slow = (each for each in texts if seconds(partial(pattern.search, each)) >= SLOW_SECONDS)
        assert any(is_found_steep(partial(longer, text=each), 600) for each in slow)


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----",
        "token=secretName=",
        "--token ",
        '{"auth": ',
        'auth"\\" : ',
        "://:",
        "eyJ-eyJ.",
        "a" * 70,
        '{"x":["',
    ],
)
def test_a_report_is_written_in_time_like_the_length_of_its_texts(piece: str) -> None:
    def redacting(size: int) -> Work:
        body = {"kind": "Pod", "x": piece * (size // len(piece))}
        return lambda: redacted_text(str(redacted(body)))

    assert not is_steep(redacting, 8000)


SETTINGS = RenderSettings(mpi_secret_name="mpi-keys")


def alike(number: int) -> str:
    return f"{'service-of-a-graph-' * 10}{number}"


def ordered(services: int, names: int, length: int = 190) -> Object:
    """A graph whose services are restarted in an order of other names, which look like theirs."""
    order = [f"x{alike(number)}"[:length] for number in range(names)]
    many = {alike(number)[-length:]: worker() for number in range(services)}
    return graph(many, restart={"id": "1", "strategy": {"order": order}})


@pytest.mark.parametrize(
    ("services", "names", "length"), [(150, 100, 190), (25, 100, 190), (25, 100, 63), (25, 100, 40)]
)
def test_an_order_of_many_names_that_look_alike_is_judged_quickly(
    services: int, names: int, length: int
) -> None:
    document = ordered(services, names, length)
    assert not verdict(document).allowed
    assert seconds(lambda: verdict(document), runs=3) < 0.3


def test_a_name_of_350000_letters_is_judged_quickly() -> None:
    long = "ab" * 175_000
    order = {"id": "1", "strategy": {"order": [f"{long}c"]}}
    document = graph({long: worker()}, restart=order)
    assert not verdict(document).allowed
    assert seconds(lambda: verdict(document), runs=3) < 0.5
    stored = a_graph({long: worker()}, restart=order)
    paths = {each.path for each in graph_problems(stored, SETTINGS)}
    assert {"spec.services", "spec.restart.strategy.order"} == paths
    assert seconds(lambda: graph_problems(stored, SETTINGS), runs=3) < 0.1


WRONG: dict[str, Object] = {
    "resources": with_service(
        resources={"requests": {"custom": {f"a{number}": "x" for number in range(4000)}}}
    ),
    "containers": with_service(
        extraPodSpec={
            "mainContainer": {"image": IMAGE},
            "containers": [{"name": "A_", "image": "x"} for _ in range(2000)],
        }
    ),
    "variables": with_service(envs=[{"value": "x"} for _ in range(4000)]),
    "labels": component(labels={f"a{number}": "b c" for number in range(4000)}),
    "mounts": component(
        volumeMounts=[{"name": "c" * 40_000, "mountPoint": "/x"}]
        + [{"name": "d", "mountPoint": "/x"} for _ in range(800)]
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_an_update_of_what_was_wrong_in_thousands_of_places_is_judged_quickly(wrong: Object) -> None:
    labelled = {**wrong, "metadata": {**wrong["metadata"], "labels": {"team": "a"}}}
    found = verdict(labelled, wrong)
    assert found.allowed
    assert 800 <= len(found.warning_problems)
    assert seconds(lambda: verdict(labelled, wrong), runs=3) < 0.6
