"""The playground: the operator in the background of a local control plane, installed as in a cluster."""

import asyncio
import hashlib
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import structlog
import yaml
from aiohttp import web

from devcluster.instance import Instance
from devcluster.kubelet import egress, pods, runtime
from devcluster.layout import free_ports
from devcluster.processes import ProcessError, first_ended, stop
from devcluster.progress import SILENT, ProgressReporter
from devcluster.startup import READY_SECONDS
from dynamo_operator import labels, user_agent
from dynamo_operator.component.api import LATER, VERSION
from dynamo_operator.crds import custom_resource_definitions
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process import flags, operator
from dynamo_operator.process.main import signature, start
from dynamo_operator.requests.api import COPIER, PROFILER, JobPodInFull, Output
from dynamo_operator.settings import Settings
from dynamo_profiler import command
from dynamoctl.installation.manifests import NAMESPACE, Choices, manifests, operator_pod
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache, Change
from kube_runtime.client.client import Client
from kube_runtime.client.connect import connect
from kube_runtime.commandline import application, execute
from kube_runtime.crd import CONVERSION_PATH, ConversionWebhook
from kube_runtime.errors import ConfigError, NotFound, OperatorError
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Object

_IN_THE_CLUSTER = frozenset(("Deployment", "PodDisruptionBudget", "Service"))
_DEFINITION = "CustomResourceDefinition"
_CONFIGURATION = "ValidatingWebhookConfiguration"
_LOOPBACK = "127.0.0.1"
HEALTH_FLAG = "--health-probe-bind-address="
WEBHOOK_FLAG = "--webhook-bind-address="


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the operator listens, on the loopback address."""

    webhooks: int
    health: int
    metrics: int


@dataclass(frozen=True, slots=True)
class Stored:
    """The version in which objects are stored, and whether the other one is served as well."""

    version: str
    serves_both: bool


_BOTH = Stored(LATER, serves_both=True)


# Roles, webhooks and flags are those of the chart; the pod, its Services and the addresses differ.
def objects(ports: Ports, stored: Stored) -> Iterator[Object]:
    """The installation without the operator's pod; the API server calls its webhooks on this machine."""
    url = f"https://{_LOOPBACK}:{ports.webhooks}"
    for body in manifests(Choices(NAMESPACE)):
        if body["kind"] == _CONFIGURATION:
            for hook in body["webhooks"]:
                path = hook["clientConfig"].pop("service")["path"]
                hook["clientConfig"]["url"] = f"{url}{path}"
        if body["kind"] not in (*_IN_THE_CLUSTER, _DEFINITION):
            yield body
    yield from definitions(f"{url}{CONVERSION_PATH}", stored)


def definitions(url: str, stored: Stored) -> tuple[Object, ...]:
    """The CRDs; of both versions with the URL that converts."""
    conversion = ConversionWebhook(url=url) if stored.serves_both else None
    return custom_resource_definitions(conversion, stored.version)


def account() -> str:
    """The name of the operator's ServiceAccount."""
    return str(operator_pod()["serviceAccountName"])


def operator_flags(ports: Ports) -> tuple[str, ...]:
    """The flags of the operator: those of the chart, then those that override them."""
    (container,) = operator_pod()["containers"]
    return (
        *container["args"],
        f"{WEBHOOK_FLAG}{_LOOPBACK}:{ports.webhooks}",
        f"{HEALTH_FLAG}{_LOOPBACK}:{ports.health}",
        f"--metrics-bind-address={_LOOPBACK}:{ports.metrics}",
        *("--metrics-secure=false", "--log-format=console"),
    )


PROFILING = "dynamo-playground-profiling"
PROCESSES = "dynamo-playground-processes"


def pod_policies() -> Iterator[Object]:
    """Mark pods when they are created, so that kwok leaves them alone: profiling pods are simulated in this
    process, and those of components are local processes.
    """
    yield from _policy(
        PROFILING,
        "has(object.metadata.labels) && 'dgdr.nvidia.com/name' in object.metadata.labels",
        'Object{metadata: Object.metadata{annotations: {"fake-kubelet": "profiles"}}}',
    )
    component = f"has(object.metadata.labels) && '{labels.COMPONENT_TYPE}' in object.metadata.labels"
    unmarked = "!(has(object.metadata.annotations) && 'fake-kubelet' in object.metadata.annotations)"
    yield from _policy(
        PROCESSES,
        f"{component} && {unmarked}",
        f'Object{{metadata: Object.metadata{{labels: {{"{pods.LABEL}": "{pods.PROCESS}"}}}}}}',
    )


def _policy(name: str, condition: str, mutation: str) -> Iterator[Object]:
    group = "admissionregistration.k8s.io"
    resource = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [resource]},
            "matchConditions": [{"name": "matches", "expression": condition}],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": mutation}}
            ],
        },
    }
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }


_COPY = 3  # arguments of the copier for its target: namespace, name, metadata
_log = structlog.get_logger(__name__)


# Whatever the image, the analytic profiler runs in this process: formulas, no GPU.
async def run_profiling_pods(client: Client) -> NoReturn:
    """Profile for each new pod, one after the other, until cancelled."""
    queue = asyncio.Queue[JobPodInFull]()
    informer = Informer(JobPodInFull, labels=labels.REQUEST)
    cache = Cache()
    cache.add(informer.store)

    def created(change: Change[JobPodInFull]) -> None:
        if change.old is None and change.new is not None:
            queue.put_nowait(change.new)

    cache.subscribe(JobPodInFull, created)
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run(client))
        while True:
            await _profile(client, await queue.get())


async def _profile(client: Client, pod: JobPodInFull) -> None:
    try:
        if (await client.get(Pod, pod.key)).status.phase not in ("Pending", ""):
            return
        status = await _outcome(client, pod)
        await client.merge_patch(Pod, pod.key, {"status": status}, subresource="status")
    except NotFound:
        return  # deleted meanwhile
    except OperatorError as error:
        _log.warning("profiling pod not simulated", pod=str(pod.key), error=str(error))


async def _outcome(client: Client, pod: JobPodInFull) -> Object:
    containers: dict[str, Object] = {container["name"]: container for container in pod.spec["containers"]}
    arguments = containers[PROFILER]["args"]
    variables = {variable["name"]: variable.get("value", "") for variable in containers[PROFILER]["env"]}
    with tempfile.TemporaryDirectory(prefix="dynamo-profiling-") as folder:
        is_later = arguments[0] == "--config"
        given = yaml.safe_load(arguments[1])
        text = yaml.safe_dump(given if is_later else given | {"output_dir": folder})
        log = Path(folder, "termination-log")
        try:
            await asyncio.to_thread(
                command.run,
                text,
                discovers="--enable-gpu-discovery" in arguments,
                request_folder=folder if is_later else "",
                environ=variables,
                termination_log=log,
            )
        except OperatorError as error:
            return _status("Failed", ((PROFILER, 1, str(error)), (COPIER, 0, "")))
        files = await asyncio.to_thread(_files, Path(folder))
    target = containers[COPIER]["args"]
    first = 1 + (target[1] == COPIER)  # after a command, or a script and its name
    namespace, name, metadata = target[first : first + _COPY]
    output_metadata = {**yaml.safe_load(metadata)["metadata"], "namespace": namespace, "name": name}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": output_metadata, "data": files}
    await client.apply(Output, body, force=True)
    digests = "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in files.items()
    )
    return _status("Succeeded", ((PROFILER, 0, ""), (COPIER, 0, digests)))


def _files(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text("utf-8") for file in sorted(folder.glob("*.yaml"))}


def _status(phase: str, ended: tuple[tuple[str, int, str], ...]) -> Object:
    statuses = []
    for name, code, message in ended:
        state = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}
        kept = {"name": name, "image": name, "imageID": "", "ready": False, "restartCount": 0}
        statuses.append(kept | {"state": {"terminated": state}})
    return {"phase": phase, "containerStatuses": statuses}


ADMINISTRATOR = "DYNAMO_PLAYGROUND_ADMINISTRATOR"
"""Environment variable with the kubeconfig of the simulated kubelet: the operator may not write pods."""

LOCAL_PODS = "DYNAMO_PLAYGROUND_PODS"
"""Environment variable with the network of pods that are local processes."""


def loopback(host: str, local: IPv4Network) -> str | None:
    """Where the process of a pod listens; None for a simulated pod."""
    try:
        address = IPv4Address(host)
    except AddressValueError:
        return None
    return egress.loopback(address) if address in local else None


@asynccontextmanager
async def simulated_workers(local: IPv4Network) -> AsyncIterator[Callable[[str], str]]:
    """Serve the LoRA API of simulated workers, where every load and unload succeeds.

    Addresses of simulated pods lead nowhere, or to other machines. So this yields a function that turns a
    worker's base URL into one of a local server, with the worker's address as the first part of the path. Of
    a pod that is a local process, it is the URL of its process.
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

        def dial(base: str) -> str:
            target = urlsplit(base)
            host = target.hostname or "unknown"
            if (process := loopback(host, local)) is not None:
                return f"{target.scheme}://{process}:{target.port}"
            return f"http://127.0.0.1:{port}/{host}"

        yield dial
    finally:
        await runner.cleanup()


async def operate(settings: Settings, stop: asyncio.Event) -> None:
    """Run the operator on simulated nodes until `stop` is set."""
    kubeconfig = Path(os.environ[ADMINISTRATOR])
    async with (
        await connect(kubeconfig, user_agent=user_agent()) as transport,
        simulated_workers(IPv4Network(os.environ[LOCAL_PODS])) as dial,
        asyncio.TaskGroup() as group,
    ):
        client = Client(transport, field_manager="simulated-kubelet")
        profiling = group.create_task(run_profiling_pods(client))
        await operator.run(settings, stop, dial=dial)
        profiling.cancel()


def run(**arguments: str | None) -> None:
    """Run the operator with simulated pods."""
    start(arguments, operate)


# `python -m dynamoctl.dev.playground run …` takes every flag of the operator.
run.__signature__ = signature()  # type: ignore[attr-defined]


def main() -> None:
    """The program."""
    program = application("dynamo-operator")
    program.command(run, name="run")
    execute(program, flags.canonical(sys.argv[1:]))


if __name__ == "__main__":
    main()


_BETWEEN_PROBES_SECONDS = 0.1
_TOKEN_LIFE = "8760h"  # noqa: S105  # a year, because nothing renews it
_PROGRAM = "dynamoctl.dev.playground"


_NOT_STARTED = f"https://{_LOOPBACK}:9443{CONVERSION_PATH}"
"""What converts before the operator is started: nothing listens there."""


# All state is in the instance's files, so a command may be killed half way and the next one
# continues.
def up(
    instance: Instance,
    progress: ProgressReporter,
    *,
    nodes: int | None = None,
    crds: Sequence[str] = (),
    serves_both: bool = True,
) -> None:
    """Start the control plane and the operator unless they run; return when the operator is ready.

    A new instance stores v1beta1 and serves v1alpha1 as well, or with `serves_both` false v1alpha1 alone. One
    that exists keeps its versions.

    Meanwhile the Dynamo runtime is installed, if it can be.

    Raises: OperatorError if something does not start.
    """
    with ThreadPoolExecutor(1) as background:
        installing = background.submit(runtime.install, SILENT)
        _up(instance, progress, nodes=nodes, crds=crds, serves_both=serves_both)
        if not installing.done():
            progress.step(f"installing the Dynamo runtime {runtime.version()} (85 MB)")
        if error := installing.exception():
            progress.step(f"the Dynamo runtime is not available: {error}; a small simulation answers")


def _up(
    instance: Instance,
    progress: ProgressReporter,
    *,
    nodes: int | None,
    crds: Sequence[str],
    serves_both: bool,
) -> None:
    new = _BOTH if serves_both else Stored(VERSION, serves_both=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "definitions.json")
        file.write_text(_list(definitions(_NOT_STARTED, new)), encoding="utf-8")
        files = [] if instance.exists else [file]
        instance.up(nodes=nodes, crds=crds, crd_files=files, progress=progress)
    _start_operator(instance, progress, new)


def restart(instance: Instance, progress: ProgressReporter) -> None:
    """Stop the operator gracefully, and start it with the current code.

    Raises: ProcessError if it does not end, or does not start.
    """
    stop([instance.companion])
    _start_operator(instance, progress, _BOTH)


def _start_operator(instance: Instance, progress: ProgressReporter, new: Stored) -> None:
    if instance.status().version is None:
        advice = f"is not running; start it with: dynamoctl dev up {instance.name}"
        raise ConfigError(instance.name, advice)
    with instance.installing(progress):
        health = _health_port(instance)
        if health is None:
            progress.step("starting the operator")
            health = _launch(instance, progress, _stored(instance) or new)
        _wait(instance, health)


_PLACEHOLDER = ("secret", "hf-token-secret", "--namespace=default")
"""What examples refer to. The simulated engines load no model, so any token will do."""


def _launch(instance: Instance, progress: ProgressReporter, stored: Stored) -> int:
    if not instance.kubectl("get", "--ignore-not-found", *_PLACEHOLDER):
        kind, *name = _PLACEHOLDER
        instance.kubectl("create", kind, "generic", *name, "--from-literal=HF_TOKEN=placeholder")
    ports = Ports(*free_ports(3, reserved=instance.ports))
    installed = _list([*objects(ports, stored), *pod_policies()])
    instance.kubectl(*("apply", "--server-side", "--force-conflicts", "--filename=-"), stdin=installed)
    kubeconfig = instance.service_account_kubeconfig(NAMESPACE, account(), duration=_TOKEN_LIFE)
    network = egress.subnet(urlsplit(instance.server).port or 0)
    variables = {ADMINISTRATOR: str(instance.kubeconfig), "KUBECONFIG": str(kubeconfig)}
    variables[LOCAL_PODS] = str(network)
    command = (sys.executable, "-m", _PROGRAM, "run", *operator_flags(ports))
    instance.run_companion(command, variables, progress=progress)
    return ports.health


def _stored(instance: Instance) -> Stored | None:
    """The versions of an instance that runs; None if it does not have our CRDs."""
    name = str(DynamoGraphDeployment.KIND)
    text = instance.kubectl("get", "crd", name, "--output=json", "--ignore-not-found")
    if not text:
        return None
    versions = json.loads(text)["spec"]["versions"]
    (stored,) = (version["name"] for version in versions if version["storage"])
    return Stored(stored, serves_both=len(versions) > 1)


def _health_port(instance: Instance) -> int | None:
    """The port of the running operator's probes; None if it does not run."""
    pid = instance.companion.pid()
    if pid is None:
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except FileNotFoundError:  # it ended just now
        return None
    addresses = [argument for argument in command if argument.startswith(HEALTH_FLAG)]
    return int(addresses[-1].rpartition(":")[2]) if addresses else None


def _wait(instance: Instance, health_port: int) -> None:
    deadline, log = time.monotonic() + READY_SECONDS, instance.companion.log
    while not _is_ready(health_port):
        if first_ended([instance.companion], within_seconds=_BETWEEN_PROBES_SECONDS):
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            last = lines[-1] if lines else "no output"
            raise ProcessError(f"the operator ended: {last}; log: {log}")
        if time.monotonic() > deadline:
            raise ProcessError(f"the operator is not ready after {READY_SECONDS} s; log: {log}")


def _list(items: Iterable[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items]})


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except OSError:  # refused, or a status of 400 and more
        return False
