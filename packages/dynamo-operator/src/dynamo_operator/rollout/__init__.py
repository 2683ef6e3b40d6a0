"""Managed rollouts of worker revisions."""
