"""TLS servers and the limits of their connections."""
