"""A refused write always has a voice: whichever kind it is, the user's object names the first cause.

Each kind that the operator writes is refused in turn, and everything else is admitted.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cluster.graph.graphs import graph, service
from cluster.legacy.deployments import CONFIG, NIM, disagg, graph_config, image
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.grove import PodCliqueSet
from dynamo_graphs.types.optional_apis import (
    InferencePool,
    LeaderWorkerSet,
    PodGroup,
    VirtualService,
)
from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from kube_runtime.client.transport import Request
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.core import Event
from kube_runtime.types.rbac import Role
from lifecycle.running import GRAPH, NAMESPACE, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock
from simulated.server import Target, status
from simulated.storage import Refused

GOLDEN = Path(__file__).parents[1] / "golden/cases"
TEXT = "not today, says the test"
WITHIN_SECONDS = 10.0


@dataclass(frozen=True)
class Case:
    """What a user creates, the last object of which should report what happens; CRDs that exist."""

    objects: tuple[tuple[Kind, Object], ...]
    installed: tuple[Kind, ...] = ()
    settings: RenderSettings = RenderSettings()


def golden(name: str, *installed: Kind) -> Case:
    """The graph of a golden case."""
    folder = GOLDEN / name
    body = yaml.safe_load((folder / "in.yaml").read_text())
    given = folder / "settings.yaml"
    settings = yaml.safe_load(given.read_text()) if given.exists() else {}
    return Case(((GRAPH, body),), installed, msgspec.convert(settings, RenderSettings))


@cache
def cases() -> Mapping[str, Case]:
    """The cases by name."""
    return {
        "planner": golden("planner"),
        "epp": golden("epp", InferencePool.KIND),
    }
