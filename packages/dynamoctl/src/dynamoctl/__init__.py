"""The two command lines: `dynamo-operator`, the manager, and `dynamoctl`, the user's tool."""
