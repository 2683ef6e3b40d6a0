"""The program in the background: the operator, and what is simulated around it.

`python -m dynamoctl.playground.process run …` takes every flag of the operator.
"""

import asyncio
import os
import sys
from pathlib import Path

from dynamo_graphs.product import user_agent
from dynamo_graphs.settings import Settings
from dynamo_operator import process as operator
from dynamo_operator.cli import flags
from dynamo_operator.cli.run import start
from dynamoctl.playground.profiling import run_profiling_pods
from dynamoctl.playground.workers import simulated_workers
from kube_runtime.client.connect import connect
from kube_runtime.client.requests import Client
from kube_runtime.commandline.application import application, execute

ADMINISTRATOR = "DYNAMO_PLAYGROUND_ADMINISTRATOR"
"""Environment variable with the kubeconfig of the simulated kubelet; the operator may not write pods."""


async def operate(settings: Settings, *, stop: asyncio.Event) -> None:
    """Run the operator on simulated nodes until `stop` is set."""
    kubeconfig = Path(os.environ[ADMINISTRATOR])
    async with (
        await connect(kubeconfig, user_agent=user_agent()) as transport,
        simulated_workers() as dial,
        asyncio.TaskGroup() as group,
    ):
        client = Client(transport, field_manager="simulated-kubelet")
        profiling = group.create_task(run_profiling_pods(client))
        await operator.run(settings, stop=stop, dial=dial)
        profiling.cancel()


def run(**arguments: str | None) -> None:
    """Run the operator, and simulate what pods do."""
    start(arguments, operate)


run.__signature__ = flags.signature()  # type: ignore[attr-defined]


def main() -> None:
    """The program."""
    program = application("dynamo-operator")
    program.command(run, name="run")
    execute(program, flags.canonical(sys.argv[1:]))


if __name__ == "__main__":
    main()
