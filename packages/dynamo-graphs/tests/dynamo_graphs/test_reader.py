"""A response that is no object is an error, and never a traceback."""

import pytest

from dynamo_graphs.reader import Reading
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.commandline import NESTING_LIMIT
from kube_runtime.errors import DecodeError
from kube_runtime.types.meta import Key
from scripted.transport import Script, answer


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"a":' * 2 * NESTING_LIMIT, b"<html>"])
async def test_an_answer_that_is_no_object_is_an_error_of_it(body: bytes) -> None:
    reading = Reading(Script([answer(200, body), answer(200, body)]))
    with pytest.raises(DecodeError, match=r"dynamographdeployments.nvidia.com prod/chat: "):
        await reading.raw(DynamoGraphDeployment.KIND, Key("prod", "chat"))
    with pytest.raises(DecodeError, match=r"dynamographdeployments.nvidia.com: "):
        await reading.all_raw(DynamoGraphDeployment.KIND, "prod")
