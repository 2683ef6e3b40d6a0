"""API servers that say what a test wants to hear."""
