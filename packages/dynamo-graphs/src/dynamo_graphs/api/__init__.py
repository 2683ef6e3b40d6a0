"""The kinds of `nvidia.com/v1alpha1`, one module each, and what follows from their fields alone."""
