"""Managed rollouts: the workers of two revisions side by side."""
