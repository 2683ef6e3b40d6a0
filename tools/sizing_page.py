"""The table and the picture of docs/sizing.md: what the profiler answers to the question on that page."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from dynamo_graphs import Latency
from dynamo_profiler.study import study
from dynamoctl.authoring.profiling import print_profile
from dynamoctl.options import ProfileOptions

PAGE = Path(__file__).parents[1] / "docs/sizing.md"
PICTURE = PAGE.with_suffix(".svg")
MODEL, GPU, RATE = "Qwen/Qwen3-32B", "h200_sxm", 10
TARGETS = Latency(first_token_ms=300, next_token_ms=20, input_tokens=4000, output_tokens=500)


def page() -> str:
    """The page with the present table, by formulas: kernels are not installed everywhere.

    Raises:
        ValueError: it has no table.
    """
    options = ProfileOptions(
        MODEL,
        gpu=GPU,
        isl=TARGETS.input_tokens,
        osl=TARGETS.output_tokens,
        ttft=TARGETS.first_token_ms,
        itl=TARGETS.next_token_ms,
        requests_per_second=RATE,
        engine="formulas",
    )
    with redirect_stdout(StringIO()) as printed:
        print_profile(options, "table", "", plot=None, report=None)
    table = printed.getvalue().split("\n\n")[1]
    text, count = re.subn(
        r"(?<=```text\n)CHOICE .*?(?=\n```)",
        lambda _: table,
        PAGE.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    if not count:
        raise ValueError(f"{PAGE.name} has no table")
    return text


def picture() -> str:
    """Cost against speed of the same question."""
    return study(MODEL, gpu=GPU, latency=TARGETS, requests_per_second=RATE, engine="formulas").svg()
