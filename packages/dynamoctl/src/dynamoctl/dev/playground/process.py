"""The program in the background: the operator, and the simulated parts of its cluster.

`python -m dynamoctl.dev.playground.process run …` takes every flag of the operator.
"""

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from dynamo_graphs.product import user_agent
from dynamo_graphs.settings import Settings
from dynamo_operator.cli import flags
from dynamo_operator.cli.run import start
from dynamo_operator.process import operator
from dynamoctl.dev.playground.profiling import run_profiling_pods
from kube_runtime.client.connect import connect
from kube_runtime.client.requests import Client
from kube_runtime.commandline.application import application, execute

ADMINISTRATOR = "DYNAMO_PLAYGROUND_ADMINISTRATOR"
"""Environment variable with the kubeconfig of the simulated kubelet: the operator may not write pods."""


@asynccontextmanager
async def simulated_workers() -> AsyncIterator[Callable[[str], str]]:
    """Serve the LoRA API of workers, where every load and unload succeeds.

    Addresses of simulated pods lead nowhere, or to other machines. So this yields a function that turns a
    worker's base URL into one of a local server, with the worker's address as the first part of the path.
    """
    loaded = defaultdict[str, dict[str, str]](dict)

    async def listed(request: web.Request) -> web.Response:
        return web.json_response({"loras": list(loaded[request.match_info["worker"]])})

    async def load(request: web.Request) -> web.Response:
        body = await request.json()
        loaded[request.match_info["worker"]][body["lora_name"]] = body["source"]["uri"]
        return web.json_response({"status": "success"})

    async def unload(request: web.Request) -> web.Response:
        loaded[request.match_info["worker"]].pop(request.match_info["name"], None)
        return web.json_response({"status": "success"})

    app = web.Application()
    app.router.add_get("/{worker}/v1/loras", listed)
    app.router.add_post("/{worker}/v1/loras", load)
    app.router.add_delete("/{worker}/v1/loras/{name:.+}", unload)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await asyncio.shield(web.TCPSite(runner, "127.0.0.1", 0).start())
        port = runner.addresses[0][1]
        yield lambda base: f"http://127.0.0.1:{port}/{urlsplit(base).hostname or 'unknown'}"
    finally:
        await runner.cleanup()


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
    """Run the operator with simulated pods."""
    start(arguments, operate)


run.__signature__ = flags.signature()  # type: ignore[attr-defined]


def main() -> None:
    """The program."""
    program = application("dynamo-operator")
    program.command(run, name="run")
    execute(program, flags.canonical(sys.argv[1:]))


if __name__ == "__main__":
    main()
