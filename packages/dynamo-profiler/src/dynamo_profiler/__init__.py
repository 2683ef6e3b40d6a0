"""The profiler: finds a graph for a model and its latency targets, without a GPU.

It implements the contract of a DynamoGraphDeploymentRequest's profiler, so it can replace Dynamo's profiler
in tests and demos and for a first estimate. Times come from formulas or from measured kernels, each with a
known error, unless the request asks to measure candidates on the cluster. `command` reads and writes files.

    configuration              the input
    shape                      the model, by name, configuration or from the catalogue, and the hardware
    engine, kernels            how long one engine takes: formulas, measured kernels
    choice                     the cheapest engines that meet the targets
    base, workers, planner     the graph, its planner and its simulated engines
    candidates, charts         the graphs that were considered, and charts of them
    run, study                 a whole run; as one call for Python programs
    spelling                   the names of values in messages
    online, client             measure candidates on the cluster
"""

from kube_runtime.errors import OperatorError

REFUSAL_CHARACTERS = 1500
"""Slightly less than what a request quotes from the end of a log."""


class Refusal(OperatorError):
    """A value is invalid, or no choice meets a target. The message is one line for the user."""
