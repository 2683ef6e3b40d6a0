"""The controller of DynamoGraphDeploymentRequest: profiling Jobs, their results, and the graph."""
