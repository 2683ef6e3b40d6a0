"""Servers and transports whose responses a test scripts."""
