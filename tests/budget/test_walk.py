"""How many functions a reconcile enters, and which; it reads the cluster once, before anything is decided."""

from pathlib import Path

import msgspec

from budget.walk import Call, walks
from simulated.clock import on_simulated_clock

CACHE = "kube_runtime/cache/store.py"
HISTORY = "history.py"
TAKEOVER = "takeover/plan.py"
"""Once there are components, its feature looks for marks of the Go operator on them."""
WAKES = "dynamo_operator/features/scaling/controller.py"
"""Decides which adapters a write of ours wakes, as a watch does; the reconcile does not see what it reads."""


class Budget(msgspec.Struct, forbid_unknown_fields=True):
    functions: int
    modules: int
    outside_the_runtime: int
    """Of the functions. The goal of the design is 120."""


BUDGET = msgspec.json.decode(Path(__file__).with_name("walk.json").read_bytes(), type=Budget)


def reads_cache(call: Call) -> bool:
    return call.module == CACHE and call.caller.startswith("dynamo_") and call.caller != WAKES


@on_simulated_clock
async def test_a_reconcile_that_creates_a_graph_enters_no_more_functions_and_modules() -> None:
    await walks()  # what a process computes once does not count
    first, *_ = await walks()
    assert len(first.functions) <= BUDGET.functions, "\n".join(first.functions)
    assert len(first.modules) <= BUDGET.modules, "\n".join(first.modules)
    outside = [function for function in first.functions if not function.startswith("kube_runtime/")]
    assert len(outside) <= BUDGET.outside_the_runtime, "\n".join(outside)


@on_simulated_clock
async def test_a_graph_without_features_enters_no_module_of_them_but_history() -> None:
    first, *later = [
        {module.partition("/features/")[2] for module in walk.modules} - {""} for walk in await walks()
    ]
    assert {HISTORY} == first
    assert {HISTORY, TAKEOVER} >= set().union(*later)


@on_simulated_clock
async def test_the_controller_reads_the_cache_only_before_the_plan() -> None:
    for walk in await walks():
        planned = [call.function for call in walk.calls].index("decide")
        assert any(map(reads_cache, walk.calls[:planned]))
        assert [] == list(filter(reads_cache, walk.calls[planned:]))
