"""`dynamoctl check` reports what a real cluster lacks, and what an operator may not do."""

import json
from pathlib import Path
from typing import Any

import pytest

from cluster import person
from cluster.conftest import ControlPlane
from cluster.permissions.conftest import Install
from cluster.permissions.roles import ACCOUNT, Installation
from dynamoctl.installation.permissions import Feature

pytestmark = pytest.mark.cluster


def check(kubeconfig: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code and the findings by name."""
    done = person.dynamoctl("check", f"--kubeconfig={kubeconfig}", *arguments, "-ojson")
    return done.returncode, {each["name"]: each for each in json.loads(done.stdout)}


def test_permissions_that_an_operator_lacks_are_named(
    kinds: ControlPlane, namespace: str, install: Install
) -> None:
    install(Installation(namespace, {Feature.CLUSTER_WIDE, Feature.SSH_KEYS}))
    account = f"--account={namespace}/{ACCOUNT}"
    _, found = check(kinds.kubeconfig, account)
    assert "ok" == found["Permissions"]["verdict"], found["Permissions"]["text"]
    _, found = check(kinds.kubeconfig, f"--account={namespace}/default")
    assert "fail" == found["Permissions"]["verdict"]
    assert "create apps/deployments" in found["Permissions"]["text"]
