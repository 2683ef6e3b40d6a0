"""DynamoGraphDeployments: what users write, and what becomes of it. Pure."""
