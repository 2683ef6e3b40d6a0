"""`dynamoctl check` reports what a real cluster lacks, and what an operator may not do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.conftest import ControlPlane
from cluster.permissions.conftest import Install
from cluster.permissions.roles import ACCOUNT, Installation
from dynamoctl.installation.permissions import Feature

pytestmark = pytest.mark.cluster


def check(kubeconfig: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code and the findings by name."""
    program = "import sys; from dynamoctl.main import main; main()"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, "check", f"--kubeconfig={kubeconfig}", *arguments, "-ojson"],
        capture_output=True,
        text=True,
        check=False,
    )
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
