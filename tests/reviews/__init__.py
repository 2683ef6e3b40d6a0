"""Admission reviews for tests: the tables of rules with examples, and how they are asked."""
