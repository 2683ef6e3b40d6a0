"""DynamoGraphDeployments from manifest to objects and status, as pure functions."""
