"""DynamoDeployment: its controller."""
