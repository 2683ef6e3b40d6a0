"""The fields of a request on the wire."""

import msgspec

from dynamo_operator.requests.api import ProfilingConfig


def test_abbreviations_keep_their_capitals_on_the_wire() -> None:
    config = ProfilingConfig(profiler_image="i", output_pvc="claim")
    assert {"profilerImage": "i", "outputPVC": "claim"} == msgspec.to_builtins(config)
