"""`python -m devcluster.kubelet`: the process, in the folder of an instance."""

import argparse
import asyncio
import os
import signal
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

from devcluster.kubelet import api, egress

KUBELET_PORT = 10250


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(prog="devcluster.kubelet")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--server-port", type=int, required=True)
    parser.add_argument("--simulated", type=IPv4Network, required=True)
    arguments = parser.parse_args()
    os.umask(0o077)
    os.chdir(arguments.folder)  # the path of a socket is short
    asyncio.run(run(arguments.server_port, arguments.simulated))


async def run(server_port: int, simulated: IPv4Network) -> None:
    """Serve the API server until SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    own = Path("run", "kubelet.sock")
    certificate = Path("pki", "kube-apiserver.crt"), Path("pki", "kube-apiserver.key")
    runner = await api.serve(api.application(), egress.private_socket(own), certificate)
    route = partial(
        egress.routed,
        local=egress.subnet(server_port),
        simulated=simulated,
        kubelet=partial(asyncio.open_unix_connection, own),
        kubelet_port=KUBELET_PORT,
    )
    server = await egress.serve(egress.private_socket(Path("run", "egress.sock")), route)
    await stop.wait()
    server.close()
    await runner.cleanup()


if __name__ == "__main__":
    main()
