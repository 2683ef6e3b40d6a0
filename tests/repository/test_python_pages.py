"""The pages about Python: the tutorial's programs run, and the reference is complete."""

import re
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs/python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_programs_without_a_cluster_run() -> None:
    offline, _, _ = TUTORIAL.read_text(encoding="utf-8").partition("## On a cluster")
    blocks = BLOCK.findall(offline)
    assert len(blocks) > 8
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102  our own page
