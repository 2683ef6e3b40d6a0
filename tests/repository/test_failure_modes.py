"""The page of failure modes names only reasons, metrics and keys that there are."""

import re
import runpy
from pathlib import Path

from dynamo_graphs.catalog import MEANINGS
from dynamo_operator import labels
from kube_runtime.apply.result import Obstacle

ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "packages/kube-runtime/src/kube_runtime/controller/events.py"


def test_what_the_page_names_is_in_the_code() -> None:
    page = (ROOT / "docs/failure-modes.md").read_text(encoding="utf-8")
    metrics = str(runpy.run_path(str(ROOT / "tools/metrics_page.py"))["page"]())
    dropped = re.findall(r'event_dropped\("(\w+)"\)', EVENTS.read_text(encoding="utf-8"))
    known = {str(each.reason) for each in MEANINGS} | set(Obstacle) | set(dropped)
    known |= set(re.findall(r"`(dynamo_operator_\w+)`", metrics))
    named = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", page))
    assert len(named) > 30
    assert set() == named - known
    keys = set(re.findall(r"`(nvidia\.com/[\w-]+)", page))
    assert set() == keys - labels.LABELS - labels.ANNOTATIONS
