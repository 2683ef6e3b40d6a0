"""Plays Grove: makes of each set what Grove makes of it, and says of everything that it runs.

Only the names and the counts that an operator reads; there are no pods.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from cluster.world import Refused, World
from dynamo_operator.shared.cluster import PodClique, PodCliqueScalingGroup, PodCliqueSet
from kube_runtime.types.meta import Kind, Object

SET, CLIQUE, GROUP = PodCliqueSet.KIND, PodClique.KIND, PodCliqueScalingGroup.KIND
ROUND_SECONDS = 0.2


@dataclass
class PlayedGrove:
    """Acts in all namespaces of `everywhere`, round after round."""

    everywhere: World
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, name="grove")
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(ROUND_SECONDS):
            try:
                for each in self.everywhere.list(SET):
                    if "deletionTimestamp" not in each["metadata"]:
                        self._act(each)
            except Refused as refused:
                # Gone or changed meanwhile, or a kind whose storage is just made: the next round sees it.
                if refused.code not in (403, 404, 409, 429):
                    raise

    def _act(self, found: Object) -> None:
        metadata, template = found["metadata"], found["spec"]["template"]
        world = replace(self.everywhere, namespace=metadata["namespace"])
        groups = template.get("podCliqueScalingGroups", [])
        grouped = {name for each in groups for name in each["cliqueNames"]}
        alone = [each for each in template["cliques"] if each["name"] not in grouped]
        wanted = [(GROUP, each["name"], each.get("replicas", 1)) for each in groups]
        wanted += [(CLIQUE, each["name"], each["spec"].get("replicas", 1)) for each in alone]
        for kind, name, size in wanted:
            self._child(world, found, kind, f"{metadata['name']}-0-{name}", size)
        _report(world, SET, found, {})

    def _child(self, world: World, owner: Object, kind: Kind, name: str, size: int) -> None:
        live = world.get(kind, name)
        if live is None:
            reference = {
                "apiVersion": SET.api_version,
                "kind": SET.name,
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
            metadata = {"name": name, "ownerReferences": [reference]}
            live = world.create(kind, {"metadata": metadata, "spec": {"replicas": size}})
        serving = "availableReplicas" if kind == GROUP else "readyReplicas"
        counts = ("replicas", "updatedReplicas", serving)
        _report(world, kind, live, dict.fromkeys(counts, live["spec"]["replicas"]))


def _report(world: World, kind: Kind, found: Object, counts: dict[str, int]) -> None:
    status = {"observedGeneration": found["metadata"]["generation"], **counts}
    told = found.get("status", {})
    if any(told.get(name) != value for name, value in status.items()):
        world.patch(kind, found["metadata"]["name"], {"status": status}, "status")
