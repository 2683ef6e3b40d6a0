"""The choice keeps the targets, is the cheapest, and never worsens when more is allowed."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from dynamo_profiler import Refusal
from dynamo_profiler.choice import Choice
from dynamo_profiler.configuration import Configuration, Mode
from dynamo_profiler.engine import FIRST_TOKEN_SECONDS, Accuracy, FormulaEngine
from dynamo_profiler.run import Inputs
from dynamo_profiler.shape import GPUS
from profiler_questions import a_configuration, results_of

configurations = st.builds(
    lambda model, gpu, sla, most, analytic: a_configuration(
        model, sla=sla, hardware={"gpuType": gpu, "maxNumGpusPerEngine": most}, analytic=analytic
    ),
    st.sampled_from(["Qwen/Qwen3-0.6B", "a/8B", "a/8B-FP8", "a/30B-A3B", "a/70B", "a/405B"]),
    st.sampled_from(list(GPUS)),
    st.fixed_dictionaries(
        {
            "isl": st.integers(1, 20000),
            "osl": st.integers(2, 4000),
            "ttft": st.floats(1, 20000),
            "itl": st.floats(0.5, 500),
        }
    ),
    st.sampled_from([1, 2, 4, 8]),
    st.fixed_dictionaries(
        {"requestsPerSecond": st.floats(0.01, 50), "margin": st.sampled_from([0, 0.3])},
        optional={
            "mode": st.sampled_from(["aggregated", "disaggregated"]),
            "maxNodesPerEngine": st.sampled_from([1, 2]),
        },
    ),
)


def chosen(known: Configuration) -> Choice | None:
    """The choice; None means: the profiler refuses."""
    try:
        return results_of(known).choice
    except Refusal:
        return None


def chosen_or_reject(known: Configuration) -> Choice:
    return chosen(known) or reject()


@given(configurations)
def test_a_choice_keeps_the_targets_and_carries_the_load(known: Configuration) -> None:
    found = chosen_or_reject(known)
    assert found.ttft <= known.targets.ttft
    assert found.itl <= known.targets.itl
    assert found.rate >= known.requests_per_second * (1 - 1e-9)
    for role in found.roles:
        assert role.engine.gpus <= known.hardware.per_node * known.hardware.nodes
        assert role.engine.cache_tokens >= known.targets.isl + known.targets.osl
        idle = replace(role, replicas=role.replicas - 1)
        assert role.rate * idle.replicas < known.requests_per_second, "one less would do"


@given(configurations)
def test_the_rates_keep_the_targets_by_the_documented_formulas(known: Configuration) -> None:
    """Each formula as the page has it, with the queue's wait, from nothing but an engine's times."""
    found = chosen_or_reject(known)
    targets = known.targets
    first, last = found.roles[0], found.roles[-1]
    alone = first.engine.prefill_seconds(targets.isl)
    one = first.engine.prompt_seconds(targets.isl)
    load = min(first.rate, found.rate / first.replicas) * one
    assert 0 < load < 1
    waited = FIRST_TOKEN_SECONDS + alone
    if found.mode is Mode.DISAGGREGATED:
        waited += first.engine.transfer_seconds(targets.isl) + one * load / (2 * (1 - load))
        answers = last.rate * targets.osl * found.itl
        assert found.itl == pytest.approx(last.engine.step_seconds(answers, targets.context))
    else:
        answers = first.rate * targets.osl * found.itl
        step = first.engine.step_seconds(answers, targets.context)
        waited += step + 0.2 * answers**0.5 * one
        assert found.itl == pytest.approx(step + answers * one / targets.osl)
    assert found.ttft == pytest.approx(waited, rel=1e-4)
    assert answers == pytest.approx(round(answers), rel=1e-6)


@given(configurations, st.floats(1, 10), st.floats(1, 10), st.floats(1, 10))
def test_looser_targets_larger_engines_and_less_load_never_cost_more(
    known: Configuration, ttft: float, itl: float, load: float
) -> None:
    found = chosen_or_reject(known)
    targets = replace(known.targets, ttft=known.targets.ttft * ttft, itl=known.targets.itl * itl)
    hardware = replace(known.hardware, max_gpus=2 * known.hardware.max_gpus)
    rate = known.requests_per_second / load
    changes: list[dict[str, Any]] = [
        {"targets": targets},
        {"hardware": hardware},
        {"requests_per_second": rate},
    ]
    for easier in changes:
        cheaper = chosen(replace(known, **easier))
        assert cheaper is not None, easier
        assert cheaper.gpus <= found.gpus, easier


@given(configurations)
def test_the_free_choice_is_the_better_of_both_modes(known: Configuration) -> None:
    free, apart, together = (
        chosen(replace(known, mode=mode)) for mode in (None, Mode.DISAGGREGATED, Mode.AGGREGATED)
    )
    costs = [entry.gpus for entry in (apart, together) if entry is not None]
    assert (free.gpus if free else None) == min(costs, default=None)


def test_a_better_gpu_never_costs_more() -> None:
    better = itertools.pairwise(["a100_pcie", "a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm"])
    for worse, gpu in better:
        costs = [chosen(a_configuration(hardware={"gpuType": entry})) for entry in (worse, gpu)]
        assert costs[0] is not None
        assert costs[1] is not None
        assert costs[1].gpus <= costs[0].gpus


TIGHT = {"ttft": 400, "itl": 12.6}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"sla": {"ttft": 1}},
            (
                r"sla\.ttft of 1 ms cannot be met: the fastest engine, 8 x h100_sxm \(tp8\), "
                r"needs [\d.]+ ms for a prompt of 3000 tokens; if predictions are exact, "
                r"\d+ ms is possible"
            ),
        ),
        (
            {"sla": {"itl": 0.1}},
            (
                r"sla\.itl of 0\.1 ms cannot be met: the fastest engine, 8 x h100_sxm \(tp8\), "
                r"needs [\d.]+ ms per token for a single answer; if predictions "
                r"are exact, \d+ ms is possible"
            ),
        ),
        (
            {"model": "a/2000B"},
            (
                r"the model does not fit: it and one request of 2200 tokens need 4002 GB, but "
                r"8 x h100_sxm have 576 GB; allow more GPUs per engine "
                r"\(hardware\.maxNumGpusPerEngine\) or a larger type"
            ),
        ),
        (
            {"sla": TIGHT, "analytic": {"mode": "aggregated", "margin": 0}, "model": "a/70B"},
            (
                r"sla\.ttft of 400 ms and sla\.itl of 12\.6 ms cannot be met together by aggregated "
                r"workers, whose prompts delay answers; use a disaggregated graph, or looser targets"
            ),
        ),
        (
            {"analytic": {"requestsPerSecond": 500, "maxGpus": 4}},
            r"analytic\.maxGpus of 4 is too low: 500 requests per second within the targets needs \d+",
        ),
        (
            {"analytic": {"requestsPerSecond": 90_000}},
            r"analytic\.requestsPerSecond of 90000 is too high: it takes more than 1000 replicas of a worker",
        ),
    ],
)
def test_an_unreachable_target_is_reported_with_what_would_be_needed(
    sections: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refusal) as refusal:
        results_of(a_configuration(**sections))
    refusal.match(f"^{message}$")


def test_long_prompts_part_the_work_and_short_ones_do_not() -> None:
    """Prompts of 8000 tokens delay answers for longer than the limit."""
    targets = {"osl": 50, "ttft": 2000, "itl": 20}
    analytic = {"requestsPerSecond": 20}
    short, long = (
        results_of(a_configuration(sla={"isl": isl, **targets}, analytic=analytic)).choice
        for isl in (200, 8000)
    )
    assert (Mode.AGGREGATED, Mode.DISAGGREGATED) == (short.mode, long.mode)


def test_a_model_is_cut_only_over_a_divisor_of_its_heads() -> None:
    config = {"num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14}
    known = a_configuration("Qwen/Qwen2.5-0.5B", analytic={"requestsPerSecond": 1})
    found = results_of(known, Inputs(model_config=config)).choice
    assert all(14 % role.engine.gpus == 0 for role in found.roles)
    alone = a_configuration("Qwen/Qwen2.5-0.5B", hardware={"minNumGpusPerEngine": 4})
    with pytest.raises(Refusal, match="no engine of 4 to 8 GPUs is possible"):
        results_of(alone, Inputs(model_config=config))


def test_a_margin_is_left_where_a_graph_has_one_and_the_answer_says_why_there_is_none() -> None:
    """Eight GPUs need 34 ms for this prompt, and 47 with the median error."""
    targets = {"isl": 3000, "osl": 500, "itl": 30}
    roomy, tight = (results_of(a_configuration(sla={**targets, "ttft": ttft})).answer for ttft in (65, 45))
    assert FormulaEngine.accuracy == roomy.choice.margin
    assert roomy.choice.ttft * 1.4 <= 0.065
    assert roomy.lines[0].startswith("safer: ")
    assert "leaves 40% for ttft and 20% for itl, the median error of formulas" in roomy.lines[0]
    assert Accuracy(0, 0) == tight.choice.margin
    assert tight.lines[0].startswith("if predictions are exact: ")
    assert tight.lines[1].startswith("safer: no graph, sla.ttft of 45 ms cannot be met")
    known = a_configuration(sla={**targets, "ttft": 45}, analytic={"margin": 0.4})
    with pytest.raises(Refusal, match="with a margin of 40% for the known error"):
        results_of(known)


def test_the_answer_has_the_graph_without_a_margin_if_it_has_fewer_gpus() -> None:
    sla = {"isl": 4000, "osl": 500, "ttft": 300, "itl": 20}
    question: dict[str, Any] = {"sla": sla, "hardware": {"gpuType": "h200_sxm"}, "model": "Qwen/Qwen3-32B"}
    answer = results_of(a_configuration(**question)).answer
    alone = results_of(a_configuration(**question, analytic={"margin": 0})).answer
    assert answer.exact is not None
    assert answer.exact.workers == alone.choice.workers
    assert answer.exact.gpus < answer.choice.gpus
    safe, exact = answer.lines
    assert safe.startswith(f"safer: {answer.choice.gpus} x h200_sxm, ")
    assert exact.startswith(f"if predictions are exact: {answer.exact.gpus} x h200_sxm, ")
    assert "measure it to find out" in exact
    assert f"if predictions are exact, {answer.exact.gpus} GPUs do" in answer.text()
    assert (alone.lines[0],) == alone.lines, "without a margin there is one answer"


def test_what_refuses_without_a_margin_is_the_reason() -> None:
    """A target within reach of the predictions is not the reason; the GPUs that they take are."""
    known = a_configuration(
        "deepseek-ai/DeepSeek-R1",
        sla={"isl": 3000, "osl": 500, "ttft": 200, "itl": 50},
        hardware={"gpuType": "h200_sxm"},
        analytic={"maxGpus": 16},
    )
    with pytest.raises(
        Refusal, match=r"^analytic\.maxGpus of 16 is too low: 1 request per second .* needs \d+$"
    ):
        results_of(known)
