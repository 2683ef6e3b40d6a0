"""Where a script starts TensorRT-LLM: found in linear time, and exactly where one pattern would find it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.backends import trtllm

TRTLLM = re.compile(r"(\S*/)?python[0-9.]*\s+[^|&;]*dynamo\.trtllm", re.ASCII)


PIECES = (
    *("python", "python3.11", "3", ".", "/", "usr/bin/", "a", "é", "\u2003", "\x1c"),
    *(" ", "\n", "\t", "\v", "\f", "\r", "-m ", "dynamo.", "vllm", "trtllm", "dynamo.vllm"),
    *("dynamo.trtllm", "|", "&", ";", "'", '"', "python -m dynamo.vllm"),
)


SCRIPTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


@given(SCRIPTS)
def test_tensorrt_llm_is_found_where_the_pattern_finds_it(script: str) -> None:
    found = TRTLLM.search(script)
    container = {"command": ["sh", "-c"], "args": [script]}
    place = found.start() if found else 0
    expected = f"{script[:place]}trtllm-llmapi-launch {script[place:]}"
    assert expected == trtllm._command(container)
