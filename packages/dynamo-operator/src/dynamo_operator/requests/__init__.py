"""DynamoGraphDeploymentRequest: its controller, profiling Jobs and their results."""
