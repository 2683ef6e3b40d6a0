"""The analytic profiler: finds a graph for a model and its latency targets by formulas, without a GPU.

It keeps the contract of a DynamoGraphDeploymentRequest's profiler, so it can take that one's place
in tests and demos and for a first guess. It measures nothing. The package is pure:
`cli/profiler.py` reads and writes.

    configuration  what the request says           gpus, shape   what the hardware and the model are
    timing         how long one engine takes       choice        the cheapest engines that meet the
    targets base, workers  the graph                       curves, planner, mocker   what goes with
    it run            all of it, step by step
"""
