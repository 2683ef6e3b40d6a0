"""What the controllers apply, computed from documents alone: `dynamoctl render` and its tests."""
