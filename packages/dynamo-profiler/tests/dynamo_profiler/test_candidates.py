"""The front has the best graphs and no other, and the table the cheapest ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_profiler.candidates import Candidate, cheapest_of_layouts, front
from dynamo_profiler.configuration import Mode
from profiler_questions import a_configuration, results_of

one = st.builds(
    Candidate,
    st.sampled_from(list(Mode)),
    st.just("1 x tp1"),
    st.integers(1, 64),
    st.floats(0.1, 100),
    st.integers(1, 1024),
    st.floats(0.01, 10),
    st.floats(0.001, 1),
    st.floats(0.1, 10_000),
    st.booleans(),
    st.booleans(),
    st.just("tp1"),
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


def test_a_run_considers_both_modes_and_its_choices_are_marked_candidates() -> None:
    sla, hardware = {"isl": 4000, "osl": 500, "ttft": 300, "itl": 20}, {"gpuType": "h200_sxm"}
    known = a_configuration("Qwen/Qwen3-32B", sla=sla, hardware=hardware, analytic={"maxGpus": 64})
    results = results_of(known)
    made, answer = results.considered, results.answer
    assert {Mode.AGGREGATED, Mode.DISAGGREGATED} == {candidate.mode for candidate in made}
    assert all(candidate.gpus <= 64 for candidate in made)
    marked = {candidate.chosen: candidate for candidate in made if candidate.chosen}
    assert marked["safer"].workers == answer.choice.workers_text()
    assert marked["safer"].meets
    assert answer.exact is not None
    assert marked["if exact"].workers == answer.exact.workers_text()
    assert marked["if exact"].meets_if_exact
    assert not any(candidate.meets and candidate.gpus < answer.choice.gpus for candidate in made)
    assert not any(candidate.meets_if_exact and candidate.gpus < answer.exact.gpus for candidate in made)


def test_a_candidate_has_the_gpus_of_the_asked_load_and_the_table_the_cheapest_of_a_layout() -> None:
    sla = {"isl": 4000, "osl": 500, "ttft": 300, "itl": 20}
    known = a_configuration("Qwen/Qwen3-32B", sla=sla, hardware={"gpuType": "h200_sxm"})
    made = results_of(known).considered
    assert all(candidate.rate >= 1 for candidate in made)
    assert all(candidate.per_gpu * candidate.gpus == pytest.approx(500) for candidate in made)
    table = cheapest_of_layouts(made)
    assert {"safer", "if exact", ""} == {candidate.chosen for candidate in table}
    assert max(candidate.gpus for candidate in table) <= 16, "one of each layout serves one request a second"
    assert len({candidate.ttft for candidate in table}) > 2
