"""An operator in one file: a ConfigMap with a text for each Greeting.

python greetings.py crd | kubectl apply --server-side -f -
python greetings.py
"""

import asyncio
import json
import signal
import sys
from typing import Annotated

from kube_runtime.apply.applier import Applier, Controlled
from kube_runtime.apply.status import patch_status
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client, Congestion
from kube_runtime.client.connect import connect
from kube_runtime.commandline import exit_on_error
from kube_runtime.controller.controller import DONE, Reconciler, Result
from kube_runtime.controller.manager import Manager
from kube_runtime.crd import Field
from kube_runtime.schema import custom_resource_definition
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Key, Kind, Object, Resource, Status, Struct


class GreetingSpec(Struct):
    """What the user wants."""

    name: Annotated[str, Field("Who is greeted.")] = "world"


class GreetingStatus(Status):
    """What the operator has done."""

    config_map: Annotated[str, Field("The ConfigMap with the text.")] = ""


class Greeting(Resource):
    """A text for one name."""

    KIND = Kind("example.com", "v1", "Greeting", "greetings")

    spec: Annotated[GreetingSpec, Field("Desired state.")] = GreetingSpec()
    status: Annotated[GreetingStatus, Field("Observed state.")] = GreetingStatus()


class GreetingReconciler(Reconciler):
    """Applies the ConfigMap, then reports it. It may be killed between any two requests."""

    reconciles, owns = Greeting, (ConfigMap,)

    def __init__(self, manager: Manager) -> None:
        self.cache, self.applier = manager.cache, Applier(manager.writer)

    async def reconcile(self, key: Key) -> Result:
        """Compare the actual with the desired state. If nothing differs, nothing is written."""
        greeting = self.cache.get(Greeting, key)
        if greeting is None or greeting.metadata.deletion_timestamp:
            return DONE  # the garbage collector deletes the ConfigMap
        await self.applier.apply(greeting, Controlled([config_map(greeting)], self.owns))
        status = GreetingStatus(config_map=f"{key.name}-greeting")
        return Result(written=await patch_status(self.applier.writer, greeting, status))


def config_map(greeting: Greeting) -> Object:
    """Build the desired ConfigMap, with only the fields that the operator owns."""
    namespace, name = greeting.key
    labels = {"example.com/greeting": name}
    metadata = {"name": f"{name}-greeting", "namespace": namespace, "labels": labels}
    text = f"Hello, {greeting.spec.name}!"
    return ConfigMap.KIND.manifest(metadata, data={"text": text})


async def run() -> None:
    """Connect, and reconcile until SIGTERM or SIGINT; then stop in order."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with await connect(user_agent="greetings") as transport:
        manager = Manager(Client(Congestion(transport), field_manager="greetings"), Cache())
        manager.inform(Informer(Greeting))
        manager.inform(Informer(ConfigMap, labels="example.com/greeting"))
        manager.control(GreetingReconciler(manager))
        await manager.run(stop)


if __name__ == "__main__":
    if sys.argv[1:] == ["crd"]:
        print(json.dumps(custom_resource_definition(Greeting)))
    else:
        with exit_on_error():
            asyncio.run(run())
