"""One real cluster for the whole session, with our operator in it; and a fresh namespace for each test."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cluster.world import World
from devcluster.programs import helm
from e2e.cluster import CHARTS, FIRST, RealCluster, messaging, start
from e2e.inside import Inside
from realnode.node import RealInstance

_KEPT = "DYNAMO_E2E_INSTANCE"
"""Name of an instance to use and to leave as it is, for who writes such tests."""


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """The cluster with NATS, etcd and our CRDs, and without an operator."""
    kept = os.environ.get(_KEPT)
    instance = (
        RealInstance(kept)
        if kept
        else RealInstance(f"e2e-{os.getpid()}", tmp_path_factory.mktemp("controlplane"))
    )
    inside = None
    try:
        start(instance)
        inside = Inside(instance.network)
        tool = helm(tmp_path_factory.mktemp("helm"), instance.kubeconfig)
        cluster = RealCluster(instance, inside, tool)
        messaging(cluster)
        definitions = CHARTS / "dynamo-crds"
        tool("upgrade", "--install", "dynamo-crds", definitions, "--namespace=default")
        yield cluster
    finally:
        if inside is not None:
            inside.close()
        if not kept:
            instance.down()


@pytest.fixture(scope="session")
def cluster(bare: RealCluster) -> RealCluster:
    bare.install(FIRST, *(("upgrade", "--install") if os.environ.get(_KEPT) else ("install",)))
    return bare


@pytest.fixture
def world(cluster: RealCluster) -> Iterator[World]:
    with fresh(cluster) as found:
        yield found


@contextmanager
def fresh(cluster: RealCluster) -> Iterator[World]:
    """A new namespace, deleted afterwards with all its pods."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", f"--namespace={name}", "--for=create", "--timeout=20s", "serviceaccount/default")
    try:
        yield cluster.world(name)
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


Report = Callable[[object], None]
"""Writes a line that is shown at the end of the run, whatever the outcome."""

_REPORTED = pytest.StashKey[list[str]]()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """What was measured, for people: it is printed after the tests."""
    lines = request.config.stash.setdefault(_REPORTED, [])
    title = request.node.name.removeprefix("test_").replace("_", " ")
    return lambda words: lines.append(f"{title}: {words}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(_REPORTED, []):
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.line(line)
