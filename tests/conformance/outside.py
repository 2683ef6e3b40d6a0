"""What the operator of a mode talks to outside of the cluster: workers, a registry, a store of archives."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from cluster.models.launch import MODELS_PROGRAM, workers_at
from conformance.modes import Mode
from conformance.recordings import Case, LegacyCase
from kube_runtime.types.meta import Object
from simulated.image_store import archive, image_store
from simulated.lora_fleet import Fleet
from texts import replaced

_REGISTRY, _STORE = "registry.example.com", "http://dynamo-store"
"""Where they were for the recorded operator."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The operator's program and its variables.

    `names` are what the recorded operator called the addresses of this machine that it sees.
    """

    program: str
    variables: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    def named(self, body: Object) -> Object:
        """An object with the recorded names in place of these addresses."""
        found: Object = replaced(body, self.names)
        return found


@contextmanager
def outside(mode: Mode, cases: Sequence[Case]) -> Iterator[Outside]:
    """All that these cases need, while it runs."""
    if not mode.is_legacy:
        with Fleet().running() as fleet:
            yield Outside(MODELS_PROGRAM, workers_at(fleet))
        return
    with image_store() as store:
        for case in cases:
            assert isinstance(case, LegacyCase)
            if case.graph is not None:
                store.archives[case.tag] = archive(case.graph)
            if case.image_exists:
                store.images.add(f"yatai.{case.tag.replace(':', '.')}")
        here = f"http://{store.address}"
        variables = {"DOCKER_REGISTRY_IN_CLUSTER_SERVER": f"{store.address}/nvidian", "YATAI_ENDPOINT": here}
        names = {here: _STORE, store.address: _REGISTRY}
        yield Outside("dynamo_operator", {**mode.variables, **variables}, names)
