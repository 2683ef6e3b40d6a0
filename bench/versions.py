"""What the second version costs: graphs on clusters that store one or the other, and lists of the other one.

    PYTHONPATH=tests python -m bench --only versions --graphs 100 --rounds 3

The rounds are pairs: a cluster that has v1alpha1 alone, then one that has v1beta1 alone. On a busy machine,
what the API server allocates for a request says more than its CPU time. Lists are those of
`kubectl get --all-namespaces`, through the webhook.
"""

import asyncio
import base64
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from statistics import median
from time import monotonic, process_time

from bench.operator_process import operator
from bench.plane import Plane, plane
from bench.scale import Figures, creation
from bench.user import connected_user, whole
from cluster.graph.graphs import graph
from dynamo_operator.crds import custom_resource_definitions
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.stored_versions import TwoVersions
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.meta import Object
from reviews.serving import running

VERSIONS = ("v1alpha1", "v1beta1")
LISTED = 3000
_LISTS = 3
_ROWS: dict[str, Callable[[Figures], float]] = {
    "all successful after (s)": lambda figures: figures.successful_seconds,
    "operator CPU until it is idle (s)": lambda figures: figures.cpu_seconds,
    "requests per graph": lambda figures: figures.requests / figures.graphs,
    "reconciles per graph": lambda figures: figures.reconciles / figures.graphs,
    "API server, CPU (s)": lambda figures: figures.server_cpu_seconds,
    "API server, allocated per request (kB)": lambda figures: figures.server_allocated_kb / figures.requests,
    "highest resident memory (MiB)": lambda figures: figures.peak_mib,
}


def main(graphs: Sequence[int], rounds: int) -> None:
    """Print the seconds of lists, then the medians for each version, and of the ratios of the pairs."""
    for stored in VERSIONS:
        _list(stored)
    for count in graphs:
        pairs = []
        for number in range(rounds):
            order = VERSIONS if number % 2 == 0 else VERSIONS[::-1]  # neither is always on a warmer machine
            done = {version: asyncio.run(_created(count, version)) for version in order}
            pairs.append([done[version] for version in VERSIONS])
            print(
                "  ",
                [[round(figure(side), 3) for figure in _ROWS.values()] for side in pairs[-1]],
                flush=True,
            )
        print(f"{count} graphs: {', '.join(VERSIONS)}, ratio")
        for name, figure in _ROWS.items():
            old, new = ([figure(pair[side]) for pair in pairs] for side in range(2))
            ratio = median(later / earlier for earlier, later in zip(old, new, strict=True))
            print(f"  {name:<38} {median(old):8.2f} {median(new):8.2f} {ratio:6.3f}", flush=True)


class _Author(TwoVersions):
    """One who writes graphs in v1beta1: without annotations of what the other version would keep."""

    def written(self, body: Object) -> Object:
        """The graph as it is typed."""
        later = super().written(body)
        return {**later, "metadata": {**later["metadata"], "annotations": {}}}


async def _created(count: int, stored: str) -> Figures:
    figures, kind = Figures(count), DynamoGraphDeployment.KIND
    with plane(stored=stored) as fresh:
        async with connected_user(fresh.instance.kubeconfig) as user:
            if stored != VERSIONS[0]:
                user.client.translations[kind] = _Author(kind)
            with operator(fresh) as running:
                await running.ready()
                await asyncio.sleep(2)
                await creation(fresh, running, user, figures)
    return figures


def _list(stored: str) -> None:
    """Print how long kubectl takes to list graphs in the version that is not stored."""
    (other,) = {*VERSIONS} - {stored}
    with (
        plane() as fresh,
        subprocess.Popen(
            [sys.executable, "-m", "bench.versions"], stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        assert server.stdout is not None
        address, authorities = json.loads(server.stdout.readline())
        _serve_both(fresh, stored, address, authorities)
        bodies = [whole(DynamoGraphDeployment, graph(f"g{number}")) for number in range(LISTED)]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
        fresh.instance.kubectl("create", "--filename=-", "--output=name", stdin=text)
        for version in (stored, other):
            seconds = []
            for _ in range(_LISTS):
                started = monotonic()
                target = f"dynamographdeployments.{version}.nvidia.com"
                names = fresh.instance.kubectl("get", target, "--all-namespaces", "--no-headers")
                seconds.append(monotonic() - started)
                assert LISTED == len(names.splitlines())
            shown = ", ".join(f"{each:.2f}" for each in seconds)
            print(f"{LISTED} graphs stored in {stored}, listed in {version} (s): {shown}", flush=True)
        server.send_signal(signal.SIGTERM)
        print(f"  CPU of all conversions (s): {float(server.stdout.readline()):.2f}")


def _serve_both(fresh: Plane, stored: str, address: str, authorities: str) -> None:
    both = custom_resource_definitions(ConversionWebhook(url=address), stored)
    items: list[Object] = [crd for crd in both if len(crd["spec"]["versions"]) > 1]
    for crd in items:
        crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = authorities
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    fresh.instance.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)


async def serve() -> None:
    """Print the address and the CA, convert until SIGTERM, and print the CPU seconds."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with running() as there:
        authorities = base64.b64encode(there.authorities).decode()
        print(json.dumps([f"https://127.0.0.1:{there.server.port}/convert", authorities]), flush=True)
        started = process_time()
        await stop.wait()
        print(process_time() - started, flush=True)


if __name__ == "__main__":  # the server's process
    asyncio.run(serve())
