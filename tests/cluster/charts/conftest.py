"""Helm, and the charts of the repository."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from cluster.conftest import ControlPlane
from devcluster.programs import Helm, helm
from kube_runtime.types.meta import Object

CHARTS = Path(__file__).parents[3] / "charts"
PLATFORM = CHARTS / "dynamo-platform"
DEFINITIONS = CHARTS / "dynamo-crds"
NAMESPACE = "dynamo-system"
ONE_VERSION = "--set=conversion.enabled=false"
"""Of the CRDs, for operators of these tests that have no webhooks."""


def objects(text: str) -> list[Object]:
    return [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each]


def rendered(
    helm: Helm,
    *arguments: str,
    release: str = "dynamo-platform",
    namespace: str = NAMESPACE,
    stdin: str | None = None,
) -> list[Object]:
    return objects(helm("template", release, PLATFORM, f"--namespace={namespace}", *arguments, stdin=stdin))


@pytest.fixture(scope="session")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm that asks no cluster."""
    return helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def online(tmp_path_factory: pytest.TempPathFactory, control_plane: ControlPlane) -> Helm:
    return helm(tmp_path_factory.mktemp("helm"), control_plane.kubeconfig)


@pytest.fixture(scope="session")
def first_crds() -> Sequence[Path]:
    """None: Helm installs ours."""
    return ()


@pytest.fixture(scope="session")
def kinds(control_plane: ControlPlane, online: Helm) -> ControlPlane:
    """The control plane, once our CRDs are installed: by their chart, as users do it."""
    take = ("--take-ownership", "--force-conflicts")
    online("install", "dynamo-crds", DEFINITIONS, "--namespace=default", ONE_VERSION, *take)
    control_plane.install_crds()  # has the garbage collector look for new kinds
    return control_plane
