"""What the controllers of the older generation say of their objects."""
