"""Every example and every golden case: what `dynamoctl render` prints is what the operator applies.

All manifests of a cluster are applied at once, each in a namespace of its own, by one operator. The recorded
cases are held to the same where they are played anyway (`tests/conformance`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from cluster.operator_process import OFF, OperatorProcess
from cluster.world import NAMESPACES, Refused, World
from conformance.modes import Mode
from conformance.play import QUEUES, SECRETS, Quiet, cluster
from dynamo_graphs.api.crd import RESOURCES
from dynamo_graphs.api.names import DEFAULT_KAI_QUEUE
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.settings import RenderSettings
from dynamoctl.installed import installed_flags
from kube_runtime.kind import Kind, Object
from kube_runtime.types.core import PersistentVolumeClaim, ServiceAccount
from offline.comparison import KINDS, identity, is_applied, unequal
from offline.printing import printed

ROOT = Path(__file__).parents[2]
MANIFESTS = (
    *sorted((ROOT / "examples").glob("*.yaml")),
    *sorted((ROOT / "tests" / "golden" / "cases").glob("*/in.yaml")),
)
_INSTALLED = (
    *(f"--{name}={value}" for name, value in installed_flags().items()),
    "--istio-allowed-gateways=*",  # what render assumes without `--settings`
)
_KINDS = {
    **{each.KIND.name: each.KIND for each in RESOURCES},
    **KINDS,
    "Secret": SECRETS,
    "ServiceAccount": ServiceAccount.KIND,
}

pytestmark = pytest.mark.cluster


@dataclass(frozen=True, slots=True)
class Setup:
    """A cluster with an operator; `settings` are given to render. None means: it is to know them itself."""

    mode: Mode
    settings: RenderSettings | None = None


def _setups() -> Iterator[Setup]:
    """Both providers as they are installed, and components as most settings change them."""
    groups = ("inferencepool", "lws", "podgroup")
    yield Setup(Mode("components", groups, _INSTALLED))
    yield Setup(Mode("grove", ("inferencepool", "grove", "kai"), _INSTALLED))


SETUPS = {each.mode.name: each for each in _setups()}


def name_of(manifest: Path) -> str:
    """The name of an example or golden case, which is also that of its namespace."""
    return manifest.parent.name if manifest.stem == "in" else f"example-{manifest.stem}"


def documents_of(manifest: Path) -> list[Object]:
    """The documents, without the namespaces that they name."""
    with manifest.open(encoding="utf-8") as text:
        found = [each for each in yaml.safe_load_all(text) if each]
    for each in found:
        each["metadata"].pop("namespace", None)
    return found


def compared(setup: Setup, folder: Path) -> dict[str, list[str]]:
    """By manifest, where what is printed is not what is applied."""
    with (
        cluster(setup.mode, folder) as (instance, everywhere),
        instance.audit_log.open(encoding="utf-8") as log,
    ):
        if "kai" in setup.mode.crds:
            everywhere.create(QUEUES, {"metadata": {"name": DEFAULT_KAI_QUEUE}})
        quiet = Quiet(log)
        flags = (*OFF, *setup.mode.flags)
        with OperatorProcess(instance.kubeconfig, folder / "operator.log", flags) as operator:
            operator.ready()
            worlds = {name_of(each): _applied(everywhere, each) for each in MANIFESTS}
            quiet.wait()
            live = _live(everywhere)
            return {
                name_of(each): _different(setup, each, worlds[name_of(each)], live, folder)
                for each in MANIFESTS
            }


def _applied(everywhere: World, manifest: Path) -> World:
    namespace = name_of(manifest)
    everywhere.create(NAMESPACES, {"metadata": {"name": namespace}})
    world = World(everywhere.server, everywhere.tls, namespace)
    documents = documents_of(manifest)
    for each in documents:
        for claim in _claims(each):
            world.create(PersistentVolumeClaim.KIND, claim)
        world.apply(_KINDS[each["kind"]], each)
    return world


def _claims(document: Object) -> Iterator[Object]:
    """The PVCs that a graph expects its user to have made."""
    for each in document.get("spec", {}).get("pvcs", ()):
        if not each.get("create"):
            size = {"requests": {"storage": "1Gi"}}
            spec = {"accessModes": ["ReadWriteMany"], "resources": size}
            yield {"metadata": {"name": each["name"]}, "spec": spec}


def _live(everywhere: World) -> dict[str, list[Object]]:
    """What the operator may have applied, by namespace."""
    found: dict[str, list[Object]] = {name_of(each): [] for each in MANIFESTS}
    for kind in (*KINDS.values(), DynamoGraphDeploymentRequest.KIND):
        for each in _listed(everywhere, kind):
            full = {"apiVersion": kind.api_version, "kind": kind.name, **each}
            found.get(each["metadata"]["namespace"], []).append(full)
    return found


def _listed(everywhere: World, kind: Kind) -> list[Object]:
    """All objects of a kind; none where it is not served."""
    try:
        return everywhere.list(kind)
    except Refused as refused:
        if refused.code == HTTPStatus.NOT_FOUND:
            return []
        raise


def _different(
    setup: Setup, manifest: Path, world: World, live: dict[str, list[Object]], folder: Path
) -> list[str]:
    given, there = documents_of(manifest), live[world.namespace]
    facts = {f"{api}Served": api in setup.mode.crds for api in ("grove", "istio", "kai", "lws")}
    documents = [_with_uid(each, there) for each in given]
    try:
        found = printed(
            documents,
            world.namespace,
            folder,
            settings=setup.settings,
            facts=facts,
        )
    except ExceptionGroup as refused:
        texts = "; ".join(str(each) for each in refused.exceptions)
        names = {identity(each) for each in given}
        applied = [identity(each) for each in there if is_applied(each)]
        return [
            f"{each}: applied, and refused by render: {texts}"
            for each in applied
            if each not in names
        ]
    return unequal(world, found, there, given)


def _with_uid(document: Object, live: Sequence[Object]) -> Object:
    """The document with the uid that the cluster has given it: the Job of a request contains it."""
    for each in live:
        if identity(each) == identity(document):
            metadata = {**document["metadata"], "uid": each["metadata"]["uid"]}
            return {**document, "metadata": metadata}
    return document


@pytest.fixture(scope="session")
def differences_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], dict[str, list[str]]]:
    """What differs on a cluster, on which all manifests are applied once."""

    @cache
    def of(setup: str) -> dict[str, list[str]]:
        return compared(SETUPS[setup], tmp_path_factory.mktemp(setup))

    return of


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("manifest", [name_of(each) for each in MANIFESTS])
def test_render_prints_what_is_applied(
    differences_of: Callable[[str], dict[str, list[str]]], setup: str, manifest: str
) -> None:
    assert [] == differences_of(setup)[manifest]
