"""Whatever a manifest looks like: a verdict, and what is allowed can be rendered.

A run plays 300 mutated manifests, one with `FUZZ_MANIFESTS=5000` that many.
"""

import os
import random

import pytest

from dynamo_graphs.offline import expanded
from dynamo_graphs.schema import schema_problems
from dynamo_operator.crds import defaulted
from dynamo_operator.shared.cluster import Facts
from reviews.asking import SETTINGS, verdict
from reviews.mutation import mutated
from reviews.rows import COMPONENT, GRAPH

MANIFESTS = int(os.environ.get("FUZZ_MANIFESTS", "300"))
BATCHES = 10
FACTS = Facts(lws_served=True, istio_served=True, inference_pools_served=True)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_mutated_manifest_gets_a_verdict_and_can_be_rendered_if_it_is_allowed(batch: int) -> None:
    chance = random.Random(batch)  # noqa: S311  # the same worlds in each run
    for _ in range(MANIFESTS // BATCHES):
        manifest = mutated(chance)
        old = mutated(chance) if chance.random() < 0.3 else None
        wrong = schema_problems(manifest)
        stored = manifest if wrong else defaulted(manifest)
        found = verdict(stored, old)
        assert all(len(each) < 2000 for each in found.warnings)
        is_rendered = manifest["kind"] in (GRAPH, COMPONENT)
        if not wrong and is_rendered and verdict(stored).allowed:
            assert () == expanded(manifest, FACTS, SETTINGS).problems, manifest
