"""DynamoGraphDeploymentScalingAdapter: its controller, and the adapters of a graph."""
