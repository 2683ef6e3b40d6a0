"""A refusal of one object does not stop the others; the result has what was written and what was not."""

import asyncio

import pytest

from kube_runtime.apply.applier import Controlled
from kube_runtime.apply.result import Applied, Change, Verb
from kube_runtime.apply.suppression import REFUSED_SECONDS
from kube_runtime.client.client import Request
from kube_runtime.errors import NotFound
from kube_runtime.types.meta import Object
from simulated.applying import TYPES, a_scene
from simulated.gadget import MAKERS, gadget
from simulated.server import Fault, Target, status

pytestmark = pytest.mark.looptime


async def test_a_refusal_is_not_lost_when_a_later_object_fails() -> None:
    async with a_scene() as scene:
        scene.world.server.faults += [Fault(403, method="PATCH"), Fault(404, method="PATCH")]
        applied = await scene.apply(gadget("a", 1), gadget("b", 1), gadget("c", 1))
        assert ["a", "b"] == [obstruction.name for obstruction in applied.blocked]
        assert {"c": 1} == scene.world.sizes()


async def test_what_misses_a_refused_object_waits_for_it_and_comes_last() -> None:
    async with a_scene() as scene:

        def refuse(request: Request, target: Target) -> Object | None:
            missing = status(404, "NotFound", f"{target.name} needs z")
            answers = {
                "a": {**missing, "details": {"name": "z"}},
                "z": status(403, "Forbidden", "no"),
                "b": {**missing, "details": {"name": "z"}},
            }
            return answers.get(target.name)

        scene.world.server.refuse = refuse
        wanted = (gadget("a", 1), gadget("z", 1), gadget("b", 1))
        applied = await scene.apply(*wanted)
        messages = [obstruction.message for obstruction in applied.blocked]
        assert ["Gadget a: a needs z", "Gadget z: no", "Gadget b waits for Gadget z"] == messages
        scene.world.server.refuse = lambda _, __: None
        await asyncio.sleep(REFUSED_SECONDS)
        assert () == (await scene.apply(*wanted)).blocked


async def test_a_deleted_owner_ends_the_apply_after_its_writes_are_reported() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1))
        scene.world.server.storage.delete(MAKERS, scene.owner.key, {})
        told = list[Change]()
        wanted = Controlled([gadget("b", 1)], TYPES)
        with pytest.raises(NotFound):
            await scene.applier.apply(scene.owner, wanted, applied=Applied(told.append))
        assert [Change(Verb.CREATE, "Gadget", "b")] == told
        assert {"a": 1, "b": 1} == scene.world.sizes(), "nothing is deleted for it"
