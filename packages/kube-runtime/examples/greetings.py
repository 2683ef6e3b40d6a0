"""An operator in one file: a ConfigMap with a text for each Greeting.

python greetings.py crd | kubectl apply --server-side -f -
python greetings.py
"""

import asyncio
import json
import sys
from typing import Annotated

from msgspec.structs import replace

from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import Controlled
from kube_runtime.apply.status_patch import patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer
from kube_runtime.client.connect import connect
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Reconciler, Result
from kube_runtime.controller.manager import Manager
from kube_runtime.crd.declare import Field
from kube_runtime.crd.definition import custom_resource_definition
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.core import ConfigMap
from kube_runtime.types.meta import Resource, Status, Struct


class GreetingSpec(Struct):
    """What the user wants."""

    name: Annotated[str, Field("Who is greeted.")] = "world"


class GreetingStatus(Status):
    """What the operator has done."""

    config_map: Annotated[str, Field("The ConfigMap that has the text.")] = ""


class Greeting(Resource):
    """A text for one name."""

    KIND = Kind("example.com", "v1", "Greeting", "greetings")

    spec: Annotated[GreetingSpec, Field("What is wanted.")] = GreetingSpec()
    status: Annotated[GreetingStatus, Field("What is done.")] = GreetingStatus()


class GreetingReconciler(Reconciler):
    """Applies the ConfigMap, then reports it. It may be killed between any two requests."""

    reconciles, owns = Greeting, (ConfigMap,)

    def __init__(self, client: Client, cache: Cache) -> None:
        self._cache, self._writer = cache, Writer(client, cache)
        annotations = ("example.com/applied-hash", "example.com/applied-generation")
        self._applier = Applier(client, self._writer, cache, *annotations)

    async def reconcile(self, key: Key) -> Result:
        """Compare what is with what should be. Nothing is written if nothing differs."""
        greeting = self._cache.get(Greeting, key)
        if greeting is None or greeting.metadata.deletion_timestamp:
            return DONE  # the garbage collector deletes the ConfigMap
        await self._applier.apply(greeting, Controlled([config_map(greeting)], self.owns))
        status = replace(greeting.status, config_map=f"{key.name}-greeting")
        await patch_status(self._writer, greeting, status)
        return DONE


def config_map(greeting: Greeting) -> Object:
    """The desired state: only the fields that the operator owns."""
    metadata = {
        "name": f"{greeting.metadata.name}-greeting",
        "namespace": greeting.metadata.namespace,
        "labels": {"example.com/greeting": greeting.metadata.name},
    }
    text = f"Hello, {greeting.spec.name}!"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


async def run() -> None:
    """Reconcile until the process is ended."""
    async with await connect(user_agent="greetings") as transport:
        client, cache = Client(transport, field_manager="greetings"), Cache()
        manager = Manager(client, cache)
        manager.inform(Informer(Greeting))
        manager.inform(Informer(ConfigMap, labels="example.com/greeting"))
        manager.control(GreetingReconciler(client, cache))
        await manager.run(asyncio.Event())


if __name__ == "__main__":
    crd = sys.argv[1:] == ["crd"]
    print(json.dumps(custom_resource_definition(Greeting))) if crd else asyncio.run(run())
