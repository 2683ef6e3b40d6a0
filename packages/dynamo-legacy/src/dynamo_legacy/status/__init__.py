"""The statuses of the older generation."""
