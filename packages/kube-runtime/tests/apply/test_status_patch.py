"""A status patch holds the difference and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.apply.status import difference, merge_patch, patch_status, with_transition_times
from kube_runtime.errors import Conflict
from kube_runtime.types.meta import Condition, Metadata
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, Gadget, GadgetStatus, key
from simulated.world import a_world

DOCUMENT = st.dictionaries(
    st.sampled_from("abcd"),
    st.recursive(
        st.integers(min_value=1) | st.text(min_size=1, max_size=3),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


def _patched(document: Any, patch: Any) -> Any:
    """RFC 7386, as its section 2 has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _patched(result.get(name), value)
    return result


@given(DOCUMENT, DOCUMENT)
def test_the_patch_turns_the_stored_into_the_wanted(
    stored: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert wanted == _patched(stored, merge_patch(stored, wanted))


@given(DOCUMENT)
def test_equal_documents_need_no_patch(document: dict[str, Any]) -> None:
    assert {} == merge_patch(document, document)


def test_a_transition_time_moves_only_with_the_status() -> None:
    stored = [Condition("Ready", "False", "old", "m", "2026-01-01T00:00:00Z")]
    same = with_transition_times([Condition("Ready", "False", "new", "n")], stored, now="now")
    assert "2026-01-01T00:00:00Z" == same[0].last_transition_time
    flipped = with_transition_times([Condition("Ready", "True", "new", "n")], stored, now="now")
    assert "now" == flipped[0].last_transition_time


def test_conditions_of_others_stay() -> None:
    stored = [Condition("Theirs", "True", "r", "m", "2026-01-01T00:00:00Z")]
    conditions = with_transition_times([Condition("Ours", "True", "r", "")], stored, now="now")
    assert ["Ours", "Theirs"] == [each.type for each in conditions]


def test_a_condition_is_written_with_all_that_is_required_of_it_however_empty() -> None:
    gadget = Gadget(Metadata("a", generation=1))
    patch = difference(gadget, GadgetStatus(conditions=(Condition("Ready", "True", "r"),)))
    [written] = patch["conditions"]
    assert written.pop("lastTransitionTime")
    assert {"type": "Ready", "status": "True", "reason": "r", "message": ""} == written


def test_a_status_that_is_not_mentioned_stays_and_a_default_is_removed() -> None:
    gadget = Gadget(Metadata("a"), status=GadgetStatus(ready=3))
    assert {} == difference(gadget, gadget.status)
    assert {"ready": None} == difference(gadget, GadgetStatus())


@on_simulated_clock
async def test_a_status_of_an_earlier_spec_is_not_written_to_a_newer_one() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        earlier = world.cache.get(Gadget, key("a"))
        assert earlier is not None
        world.has("a", 2)
        with pytest.raises(Conflict):
            await patch_status(world.writer, earlier, GadgetStatus(ready=1))
    assert "status" not in world.server.storage.read(GADGETS, key("a"))
