"""The controller of DynamoNimDeployment."""
