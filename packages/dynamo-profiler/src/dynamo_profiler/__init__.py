"""The profiler: finds a graph for a model and its latency targets, without a GPU.

It implements the contract of a DynamoGraphDeploymentRequest's profiler, so it can replace Dynamo's profiler
in tests and demos and for a first estimate. Times come from formulas or from measured kernels, each with a
known error, unless the request asks to measure candidates on the cluster. `command` reads and writes files.

    configuration, section                    the input
    shape, catalog, gpus                      the model and the hardware
    engine, sources, timing, kernels          how long one engine takes: formulas, measured kernels
    choice, pareto                            the cheapest engines that meet the targets; all candidates
    base, workers, planner                    the graph, its planner and its simulated engines
    charts                                    charts of the candidates
    run, study                                a whole run; as one call for Python programs
    online, client, measurement               measure candidates on the cluster
"""
