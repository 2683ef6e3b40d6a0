"""The profiler: finds a graph for a model and its latency targets without a GPU.

It keeps the contract of a DynamoGraphDeploymentRequest's profiler, so it can take that one's place
in tests and demos and for a first estimate. Its times come from formulas or from measured kernels,
each with a known error; the graph itself is not measured. `command` reads and writes.

    configuration                             what the request asks for
    shape, catalog, gpus                      what the model and the hardware are
    engine, layouts, sources, timing, kernels how long one engine takes, and where that comes from
    choice, pareto                            the cheapest engines that meet the targets, and the others
    base, workers, planner                    the graph and what belongs to it
    charts                                    pictures of what was considered
    run, study                                all of it, step by step; as one call for Python programs
"""
