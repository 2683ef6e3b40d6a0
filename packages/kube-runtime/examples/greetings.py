"""An operator in one file: a ConfigMap with a text for each Greeting.

python greetings.py crd | kubectl apply --server-side -f -
python greetings.py
"""

import json
import sys
from typing import Annotated

import kube_runtime.controller.operator as kube


class GreetingSpec(kube.Struct):
    """What the user wants."""

    name: Annotated[str, kube.Field("Who is greeted.")] = "world"


class GreetingStatus(kube.Status):
    """What the operator has done."""

    config_map: Annotated[str, kube.Field("The ConfigMap with the text.")] = ""


class Greeting(kube.Resource):
    """A text for one name."""

    KIND = kube.Kind("example.com", "v1", "Greeting", "greetings")

    spec: Annotated[GreetingSpec, kube.Field("Desired state.")] = GreetingSpec()
    status: Annotated[GreetingStatus, kube.Field("Observed state.")] = GreetingStatus()


class GreetingReconciler(kube.Reconciler):
    """Applies the ConfigMap, then reports it. It may be killed between any two requests."""

    reconciles, owns = Greeting, (kube.ConfigMap,)

    def __init__(self, manager: kube.Manager) -> None:
        self.cache, self.applier = manager.cache, kube.Applier(manager.writer)

    async def reconcile(self, key: kube.Key) -> kube.Result:
        """Compare the actual with the desired state. If nothing differs, nothing is written."""
        greeting = self.cache.get(Greeting, key)
        if greeting is None or greeting.metadata.deletion_timestamp:
            return kube.DONE  # the garbage collector deletes the ConfigMap
        await self.applier.apply(greeting, kube.Controlled([config_map(greeting)], self.owns))
        status = GreetingStatus(config_map=f"{key.name}-greeting")
        return kube.Result(written=await kube.patch_status(self.applier.writer, greeting, status))


def config_map(greeting: Greeting) -> kube.Object:
    """Build the desired ConfigMap, with only the fields that the operator owns."""
    namespace, name = greeting.key
    labels = {"example.com/greeting": name}
    metadata = {"name": f"{name}-greeting", "namespace": namespace, "labels": labels}
    text = f"Hello, {greeting.spec.name}!"
    return kube.ConfigMap.KIND.manifest(metadata, data={"text": text})


if __name__ == "__main__":
    if sys.argv[1:] == ["crd"]:
        print(json.dumps(kube.custom_resource_definition(Greeting)))
    else:
        selected = kube.Informer(kube.ConfigMap, labels="example.com/greeting")
        kube.run_operator("greetings", GreetingReconciler, informers=[selected])
