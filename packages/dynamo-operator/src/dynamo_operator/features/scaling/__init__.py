"""The controller of DynamoGraphDeploymentScalingAdapter, and the adapters of a graph."""
