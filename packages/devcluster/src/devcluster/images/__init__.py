"""Container images without a container engine: Containerfile, builds, OCI archives."""
