"""The controller of DynamoNimRequest, which builds images."""
