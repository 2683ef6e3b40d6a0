"""DynamoNimDeployment: its controller."""
