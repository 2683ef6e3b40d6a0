"""Operators that act as a ServiceAccount with the roles of the list, and no other right."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from cluster.conftest import ControlPlane
from cluster.permissions.roles import ACCOUNT, Installation

Install: TypeAlias = Callable[[Installation], Path]


@pytest.fixture
def install(kinds: ControlPlane) -> Install:
    """Creates a ServiceAccount and its roles; returns a kubeconfig file that acts as it."""

    def make(installation: Installation) -> Path:
        body = {"apiVersion": "v1", "kind": "List", "items": list(installation.objects())}
        kinds.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(body))
        return kinds.instance.service_account_kubeconfig(installation.own, ACCOUNT)

    return make
