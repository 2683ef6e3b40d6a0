"""Admission webhooks: validate objects of our kinds before the API server stores them."""
