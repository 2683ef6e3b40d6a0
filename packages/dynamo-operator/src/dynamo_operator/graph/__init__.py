"""DynamoGraphDeployment: its controller."""
