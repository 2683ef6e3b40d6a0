"""The controller of DynamoDeployment."""
