"""A Kubernetes operator for NVIDIA Dynamo inference graphs."""
