"""CPU and latency of admission reviews.

PYTHONPATH=tests python -m bench --only reviews

A webhook server in a separate process gets 200 reviews a second over TLS, on persistent connections as an API
server has them.
"""

import asyncio
import signal
import ssl
import subprocess
import sys
import time

import aiohttp

from cluster.graph.graphs import graph
from dynamo_operator.process import observability
from dynamo_operator.settings import LoggingSettings
from kube_runtime.types.meta import Object
from reviews.asking import review
from reviews.serving import new_certificate, running

RATE = 200
SECONDS = 15
PATH = "/validate-nvidia-com-v1alpha1-dynamographdeployment"


async def serve() -> None:
    """Print the port, serve until SIGTERM, and print the CPU seconds."""
    observability.configure(LoggingSettings(), sys.stderr)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with running() as there:
        print(there.server.port, flush=True)
        started = time.process_time()
        await stop.wait()
        print(time.process_time() - started, flush=True)


async def load(port: int) -> list[float]:
    """Send reviews at a constant rate; return their latencies in seconds, sorted."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    body = review(_shown(), _shown())
    taken: list[float] = []

    async def one(session: aiohttp.ClientSession) -> None:
        started = time.perf_counter()
        headers = {"Content-Type": "application/json"}
        async with session.post(PATH, data=body, headers=headers) as answer:
            assert b'"allowed":true' in await answer.read()
        taken.append(time.perf_counter() - started)

    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as session:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        async with asyncio.TaskGroup() as group:
            for number in range(RATE * SECONDS):
                await asyncio.sleep(max(0.0, begin + number / RATE - loop.time()))
                group.create_task(one(session))
    return sorted(taken)


def main() -> None:
    """Print the measurements."""
    new_certificate()  # so that imports are not measured
    command = [sys.executable, "-m", "bench.reviews"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        assert server.stdout is not None
        taken = asyncio.run(load(int(server.stdout.readline())))
        server.send_signal(signal.SIGTERM)
        cpu = float(server.stdout.readline())
    count = len(taken)
    print(f"{count} reviews of an update of a graph of three services, {RATE} a second:")
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
        print(f"  {name:<6} {taken[int(share * count)] * 1e3:8.2f} ms")
    print(f"  CPU of the server for each {cpu / count * 1e3:8.3f} ms")


def _shown() -> Object:
    body = graph()
    body["metadata"] |= {"namespace": "lab"}
    return {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", **body}


if __name__ == "__main__":  # the server's process
    new_certificate()
    asyncio.run(serve())
