"""The pictures show every candidate, the choices, the targets, and no more room than these take."""

from collections.abc import Callable, Sequence
from xml.etree import ElementTree as ET

import pytest

from dynamo_profiler.candidates import COLUMNS, Candidate, row
from dynamo_profiler.charts import html, load_svg, svg
from dynamo_profiler.configuration import Targets
from profiler_questions import a_configuration, results_of

KNOWN = a_configuration(
    "Qwen/Qwen3-32B", sla={"isl": 4000, "osl": 500, "ttft": 300, "itl": 20}, hardware={"gpuType": "h200_sxm"}
)
MADE = results_of(KNOWN).considered


def elements(text: str, kind: str) -> list[ET.Element]:
    drawn = ET.fromstring(text)  # noqa: S314  our own text
    return [element for element in drawn.iter() if element.tag.endswith(kind)]


@pytest.mark.parametrize("draw", [svg, load_svg])
def test_each_of_two_panels_has_every_candidate_the_target_and_rings_around_the_choices(
    draw: Callable[[str, Sequence[Candidate], Targets], str],
) -> None:
    text = draw("a & b", MADE, KNOWN.targets)
    circles = elements(text, "circle")
    rings = [circle for circle in circles if circle.get("class") == "choice"]
    points = [circle for circle in circles if circle.get("class") is None]
    chosen = [candidate for candidate in MADE if candidate.chosen]
    assert 2 * len(MADE) == len(points)
    assert 2 * len(chosen) == len(rings) == 4
    assert 2 == len([path for path in elements(text, "path") if path.get("class") == "target"])
    texts = {element.text for element in elements(text, "text")}
    assert {"itl 20 ms", "ttft 300 ms"} <= texts
    assert {f"{one.chosen}: {one.gpus} GPUs" for one in chosen} <= texts


def test_axes_end_where_the_points_do() -> None:
    points = [
        circle for circle in elements(svg("", MADE, KNOWN.targets), "circle") if not circle.get("class")
    ]
    first = points[: len(MADE)]
    across, up = ([float(str(point.get(name))) for point in first] for name in ("cx", "cy"))
    assert 0.9 * 540 <= max(across) <= 540
    assert 40 <= min(up) <= 40 + 0.1 * 310


def test_a_page_has_every_candidate_and_needs_nothing_else() -> None:
    page = html("<model>", ["a & b"], MADE, KNOWN.targets)
    assert "<h1>&lt;model&gt;</h1>" in page
    assert "src=" not in page
    assert "href=" not in page
    assert len(MADE) + 1 == page.count("<tr")
    assert 2 == page.count('<tr class="chosen">')
    assert len(COLUMNS) == len(row(MADE[0]))


def test_one_candidate_is_a_picture() -> None:
    (alone,) = [candidate for candidate in MADE if candidate.chosen == "safer"]
    assert 4 == len(elements(svg("one", [alone], KNOWN.targets), "circle"))


def test_names_of_choices_do_not_overlap() -> None:
    for draw in (svg, load_svg):
        names = [one for one in elements(draw("", MADE, KNOWN.targets), "text") if ": " in (one.text or "")]
        for panel in (names[:2], names[2:]):
            heights = [float(str(one.get("y"))) for one in panel]
            assert 12 <= abs(heights[0] - heights[1])


def test_commands_in_the_notes_of_a_page_are_code() -> None:
    assert "<p>see <code>online</code></p>" in html("", ["see `online`"], MADE, KNOWN.targets)
