"""`python -m devcluster.kubelet`: the process, in the folder of an instance."""

import argparse
import asyncio
import os
import signal
import sys
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

from devcluster.kubelet import api, egress, runtime
from devcluster.kubelet.containers import launched
from devcluster.kubelet.pods import SIMULATION, Kubelet
from kube_runtime.client.client import Client
from kube_runtime.client.connect import connect

KUBELET_PORT = 10250
_RETRY_SECONDS = 0.5


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(prog="devcluster.kubelet")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--simulated", type=IPv4Network, required=True)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    arguments = parser.parse_args()
    os.umask(0o077)
    os.chdir(arguments.folder)  # the path of a socket is short
    authority = Path("pki", "ca.crt").read_bytes()
    asyncio.run(run(arguments, authority))


async def run(arguments: argparse.Namespace, authority: bytes) -> None:
    """Serve the API server, and run pods, until SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    network = egress.subnet(int(arguments.server.rpartition(":")[2]))
    async with await connect(arguments.kubeconfig, user_agent="local-kubelet") as transport:
        kubelet = Kubelet(
            Client(transport, field_manager="local-kubelet"),
            server=arguments.server,
            authority=authority,
            network=network,
            folder=arguments.folder,
            find_runtime=partial(runtime.installed, arguments.folder),
            simulation=(sys.executable, "-I", str(SIMULATION)),
        )
        own = Path("run", "kubelet.sock")
        certificate = Path("pki", "kube-apiserver.crt"), Path("pki", "kube-apiserver.key")
        runner = await api.serve(api.application(kubelet.container), egress.private_socket(own), certificate)
        route = partial(
            egress.routed,
            local=network,
            simulated=arguments.simulated,
            kubelet=partial(asyncio.open_unix_connection, own),
            kubelet_port=KUBELET_PORT,
        )
        server = await egress.serve(egress.private_socket(Path("run", "egress.sock")), route)
        async with asyncio.TaskGroup() as group:  # a failure ends the process, and `dev status` shows that
            tasks = [group.create_task(kubelet.run()), group.create_task(pass_events_on(arguments.folder))]
            await stop.wait()
            for task in tasks:
                task.cancel()
        server.close()
        await runner.cleanup()


async def pass_events_on(folder: Path) -> None:
    """Run the broker of the runtime's events, once the runtime is installed, until cancelled."""
    while True:
        if present := runtime.installed(folder):
            command = (str(present.python), str(runtime.BROKER), *map(str, runtime.SOCKETS))
            broker = await asyncio.create_subprocess_exec(*launched(command))
            try:
                await broker.wait()
            finally:
                if broker.returncode is None:
                    broker.kill()
                    await broker.wait()
        await asyncio.sleep(_RETRY_SECONDS)


if __name__ == "__main__":
    main()
