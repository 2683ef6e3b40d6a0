"""What v1beta1 calls experimental: the GPU memory service, failover between engines, checkpoints."""
