"""The front has the best graphs and no other, and the pictures show all of them."""

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from dynamo_profiler.charts import COLUMNS, Candidate, front, html, row, svg
from dynamo_profiler.configuration import Mode
from profiler_questions import a_configuration, results_of

one = st.builds(
    Candidate,
    st.sampled_from(list(Mode)),
    st.just("1 x tp1"),
    st.integers(1, 64),
    st.integers(1, 1024),
    st.floats(0.01, 10),
    st.floats(0.001, 1),
    st.floats(0.1, 10_000),
    st.booleans(),
)


def beats(better: Candidate, candidate: Candidate) -> bool:
    at_least = better.per_user >= candidate.per_user and better.per_gpu >= candidate.per_gpu
    return at_least and (better.per_user, better.per_gpu) != (candidate.per_user, candidate.per_gpu)


@given(st.lists(one, max_size=30))
def test_no_graph_beats_one_on_the_front_and_each_other_is_beaten_or_equal(made: list[Candidate]) -> None:
    best = front(made)
    assert not any(beats(other, candidate) for candidate in best for other in made)
    pairs = {(candidate.per_user, candidate.per_gpu) for candidate in best}
    assert all(
        (candidate.per_user, candidate.per_gpu) in pairs or any(beats(other, candidate) for other in best)
        for candidate in made
    )


def test_a_run_considers_both_modes_and_its_choice_is_as_good_as_a_candidate_that_meets() -> None:
    known = a_configuration("meta-llama/Llama-3.3-70B-Instruct", analytic={"maxGpus": 32})
    results = results_of(known)
    made = results.considered
    assert {Mode.AGGREGATED, Mode.DISAGGREGATED} == {candidate.mode for candidate in made}
    assert all(candidate.gpus <= 32 for candidate in made)
    chosen = {(candidate.mode, candidate.gpus) for candidate in made if candidate.meets}
    assert (results.choice.mode, results.choice.roles[0].engine.gpus) in chosen


def test_pictures_have_every_candidate_and_need_nothing_else() -> None:
    made = results_of(a_configuration()).considered
    drawn = ET.fromstring(svg("a & b", made))  # noqa: S314  our own text
    circles = [element for element in drawn.iter() if element.tag.endswith("circle")]
    assert len(made) == len(circles)
    page = html("<model>", ["a & b"], made)
    assert "<h1>&lt;model&gt;</h1>" in page
    assert "src=" not in page
    assert "href=" not in page
    assert len(made) + 1 == page.count("<tr>")
    assert len(COLUMNS) == len(row(made[0]))
