"""Trace one reconcile of a graph: which functions of ours it enters, of which modules.

`python -m budget.walk` (with PYTHONPATH=tests) prints them in the order in which they are entered.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NamedTuple

from budget.kubelet import kubelets
from cluster.graph.graphs import graph
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.controller import GraphController
from kube_runtime.controller.controller import Result
from kube_runtime.types.meta import Key
from lifecycle.running import REST_SECONDS, running
from simulated.clock import on_simulated_clock


class Call(NamedTuple):
    """A call to a function; `caller` is the module that it came from, "" if that is not ours."""

    module: str
    function: str
    caller: str


@dataclass
class Walk:
    """The calls to functions of ours in one reconcile, in their order."""

    calls: list[Call] = field(default_factory=list)

    @property
    def functions(self) -> list[str]:
        """The functions, each once, in the order in which they are first entered."""
        return list(dict.fromkeys(f"{call.module}: {call.function}" for call in self.calls))

    @property
    def modules(self) -> list[str]:
        """Their modules, in the order in which they are first entered."""
        return list(dict.fromkeys(call.module for call in self.calls))

    @contextmanager
    def traced(self) -> Iterator[None]:
        own_task = asyncio.current_task()

        def on_event(frame: FrameType, event: str, _: object) -> None:
            module, code = module_of(frame), frame.f_code
            is_named = not code.co_name.startswith("<")  # a reader does not stop at a lambda or comprehension
            if event == "call" and module and is_named and asyncio.current_task() is own_task:
                self.calls.append(Call(module, code.co_qualname, module_of(frame.f_back)))

        sys.setprofile(on_event)
        try:
            yield
        finally:
            sys.setprofile(None)


def module_of(frame: FrameType | None) -> str:
    """The module of a frame, as a path in its package; "" if it is not ours."""
    _, is_ours, module = frame.f_code.co_filename.rpartition("/src/") if frame else ("", "", "")
    return module if is_ours else ""


async def walks() -> list[Walk]:
    """Every reconcile of one new graph with three services, until it is ready: the first creates all."""
    recorded: list[Walk] = []
    reconcile = GraphController.reconcile

    async def traced(self: GraphController, key: Key) -> Result:
        recorded.append(Walk())
        with recorded[-1].traced():
            return await reconcile(self, key)

    GraphController.reconcile = traced  # type: ignore[method-assign]
    try:
        async with running() as world, kubelets(world):
            world.create(DynamoGraphDeployment.KIND, graph("chat"))
            await asyncio.sleep(REST_SECONDS)
            state = world.read(DynamoGraphDeployment.KIND, "chat")["status"]["state"]
            assert "successful" == state
    finally:
        GraphController.reconcile = reconcile  # type: ignore[method-assign]
    return recorded


@on_simulated_clock
async def main() -> None:
    """Print the first reconcile, which creates everything, as a reader would follow it."""
    first, *_ = await walks()
    total = f"{len(first.functions)} functions in {len(first.modules)} modules"
    sys.stdout.write("\n".join((*first.functions, total, "")))


if __name__ == "__main__":
    main()
