"""An operator in one file: a ConfigMap with a text for each Greeting.

python greetings.py crd | kubectl apply --server-side -f -
python greetings.py
"""

import asyncio
import json
import sys
from typing import Annotated, ClassVar

from kube_runtime.apply.applier import Applier
from kube_runtime.apply.status_patch import patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.client.connect import connect
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.crd.declare import Field
from kube_runtime.crd.structural import object_schema
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.core import ConfigMap
from kube_runtime.types.meta import Resource, Struct

LABEL = "example.com/greeting"


class GreetingSpec(Struct, frozen=True):
    """Who is greeted."""

    name: Annotated[str, Field("Who is greeted.")] = "world"


class GreetingStatus(Struct, frozen=True):
    """Where the text is."""

    config_map: Annotated[str, Field("The ConfigMap that has the text.")] = ""


class Greeting(Resource):
    """A text for one name."""

    KIND = Kind("example.com", "v1", "Greeting", "greetings")

    spec: GreetingSpec = GreetingSpec()
    status: GreetingStatus = GreetingStatus()


class GreetingReconciler:
    """Applies the ConfigMap, then reports it. It may be killed between any two requests."""

    reconciles: ClassVar[type[Resource]] = Greeting
    owns: ClassVar[tuple[type[Resource], ...]] = (ConfigMap,)
    watches: tuple[Watches, ...] = ()

    def __init__(self, client: Client, cache: Cache) -> None:
        self._cache, self._writer = cache, Writer(client, cache)
        keys = ("example.com/applied-hash", "example.com/applied-generation")
        self._applier = Applier(client, self._writer, cache, *keys)

    async def reconcile(self, key: Key) -> Result:
        """Compare what is with what should be. Nothing is written if nothing differs."""
        greeting = self._cache.get(Greeting, key)
        if greeting is None or greeting.metadata.deletion_timestamp:
            return DONE  # the garbage collector deletes the ConfigMap
        await self._applier.apply(greeting, wanted=[config_map(greeting)], owns=self.owns)
        await patch_status(self._writer, greeting, {"configMap": f"{key.name}-greeting"})
        return DONE


def config_map(greeting: Greeting) -> Object:
    """The desired state: only the fields that the operator owns."""
    metadata = {
        "name": f"{greeting.metadata.name}-greeting",
        "namespace": greeting.metadata.namespace,
        "labels": {LABEL: greeting.metadata.name},
    }
    text = f"Hello, {greeting.spec.name}!"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def crd() -> Object:
    """The CustomResourceDefinition, from the structs above."""
    kind = Greeting.KIND
    parts = {"spec": object_schema(GreetingSpec), "status": object_schema(GreetingStatus)}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": parts}},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()},
            "versions": [version],
        },
    }


async def run() -> None:
    """Reconcile until the process is ended."""
    metrics, cache = RuntimeMetrics(), Cache()
    async with await connect() as transport:
        client = Client(transport, field_manager="greetings")
        events = EventWriter(client, instance="greetings", metrics=metrics)
        manager = Manager(client, cache, metrics=metrics, events=events)
        manager.inform(Informer(Greeting))
        manager.inform(Informer(ConfigMap, labels=LABEL))
        manager.control(GreetingReconciler(client, cache))
        await manager.run(asyncio.Event())


if __name__ == "__main__":
    print(json.dumps(crd())) if sys.argv[1:] == ["crd"] else asyncio.run(run())
