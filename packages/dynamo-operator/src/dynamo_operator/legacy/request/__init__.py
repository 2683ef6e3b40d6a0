"""The controller of DynamoNimRequest: builds images."""
