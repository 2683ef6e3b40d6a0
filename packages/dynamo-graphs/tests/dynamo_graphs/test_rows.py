"""Results are drawn in Jupyter with all text escaped, and are short on one line."""

from html.parser import HTMLParser

import pytest

from dynamo_graphs import Graph, Problem
from dynamo_graphs.changes import Change, Effect
from dynamo_graphs.events import Event
from dynamo_graphs.explanation import Explanation
from dynamo_graphs.ownership import OwnedField
from dynamo_graphs.rows import Rows, paragraph

EVIL = "<script>alert('x')</script>&\x00"
EVENT = Event("2026-01-31T12:00:00Z", EVIL, EVIL, EVIL, 1, EVIL)
CHANGE = Change(
    EVIL, "change", (f"+{EVIL}",), (Effect(EVIL, "restart", EVIL),), (OwnedField(EVIL, f"spec.{EVIL}"),)
)


class Tags(HTMLParser):
    """The tags that are open, and all that there were."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.all: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.all.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    "result",
    [
        Explanation((EVIL, EVIL), (EVIL,)),
        CHANGE,
        Rows([Problem(EVIL, EVIL)]),
        Rows([EVENT, EVENT]),
        Rows[Problem](),
    ],
    ids=lambda it: type(it).__name__,
)
def test_a_result_is_whole_html_without_markup_of_others(result: Explanation | Change | Rows[object]) -> None:
    tags = Tags()
    tags.feed(result._repr_html_())
    tags.close()
    assert [] == tags.open
    assert tags.all <= {"p", "b", "table", "thead", "tbody", "tr", "th", "td", "br", "pre"}


def test_a_result_is_short_on_one_line() -> None:
    explanation = Explanation(("prod/chat is not ready.", *["a long finding"] * 50), ("do this",) * 9)
    assert "<Explanation: prod/chat is not ready. (and 59 more lines)>" == repr(explanation)
    change = Change(
        "DynamoGraphDeployment a/b", "change", ("+x",) * 99, (Effect("Decode", "scale", "1 → 2"),)
    )
    assert "<Change DynamoGraphDeployment a/b: change, Decode scale>" == repr(change)


def test_problems_are_a_tuple_with_a_line_for_each() -> None:
    graph = Graph("chat")
    (problem,) = graph.problems()
    assert str(problem) == str(graph.problems())
    assert () == graph.frontend().problems()


def test_commands_in_a_paragraph_are_code() -> None:
    assert "<p>run <code>a &lt; b</code>, then <code>c</code></p>" == paragraph("run `a < b`, then `c`")
