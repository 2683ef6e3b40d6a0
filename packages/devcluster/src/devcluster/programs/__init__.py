"""The programs of the control plane and of its tools: downloaded, or built from pinned Go modules."""
