"""DynamoComponentDeployment: its controller."""
