"""Which namespaces this operator owns."""
