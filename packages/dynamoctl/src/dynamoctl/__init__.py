"""The command line `dynamoctl`, the user's tool."""
