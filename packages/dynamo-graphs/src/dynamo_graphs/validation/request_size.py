"""What a request may not exceed, so that it can be stored and its Job can start.

No other check reports this early: the API server accepts the Job, and the kubelet then fails to start the
container, hours later, with a message that names no field.
"""

from collections.abc import Iterator

import msgspec

from dynamo_graphs.api.request import DynamoGraphDeploymentRequestSpec
from dynamo_graphs.validation import Problem

ARGUMENT_LIMIT_BYTES = 128 * 1024 - 1
"""Of one argument, or of one variable with its name. Source: Linux, MAX_ARG_STRLEN, without the end mark."""

SPEC_LIMIT_BYTES = 200_000
"""Of the spec as JSON. It is stored twice, beside a graph of 900,000 bytes and ConfigMaps of 250,000, in an
object of at most 1.5 MiB. Source: etcd's default limit of a request."""

_PROFILING = "spec.profilingConfig"


def size_problems(spec: DynamoGraphDeploymentRequestSpec, config_bytes: int) -> Iterator[Problem]:
    """What is too large; `config_bytes` is the size of the configuration as the profiler gets it."""
    found = [*_arguments(spec, config_bytes)]
    yield from found
    size = len(msgspec.json.encode(spec))
    if size > SPEC_LIMIT_BYTES and not found:
        message = (
            f"the spec has {size} bytes as JSON (limit {SPEC_LIMIT_BYTES}, so that results fit "
            "beside it): move large values into ConfigMaps and reference them in "
            f"{_PROFILING}.configMapRef or {_PROFILING}.envFrom"
        )
        yield Problem("spec", f"spec: {message}")


def _arguments(spec: DynamoGraphDeploymentRequestSpec, config_bytes: int) -> Iterator[Problem]:
    if config_bytes > ARGUMENT_LIMIT_BYTES:
        path = f"{_PROFILING}.config"
        message = (
            f"{path} has {config_bytes} bytes, but the profiler receives it as one argument "
            f"(limit {ARGUMENT_LIMIT_BYTES}): move large values into the ConfigMap of "
            f"{_PROFILING}.configMapRef"
        )
        yield Problem(path, message)
    for at, variable in enumerate(spec.profiling_config.env):
        size = sum(len(str(variable.get(each, "")).encode()) for each in ("name", "value")) + 1
        if size > ARGUMENT_LIMIT_BYTES:
            path = f"{_PROFILING}.env[{at}].value"
            message = f"{path} makes a variable of {size} bytes (limit {ARGUMENT_LIMIT_BYTES})"
            yield Problem(path, message)
