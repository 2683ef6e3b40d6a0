"""The inference frameworks, one module each: their worker containers, and launches on several nodes."""
