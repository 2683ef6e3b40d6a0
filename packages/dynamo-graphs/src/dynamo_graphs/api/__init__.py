"""What users write: the kinds of `nvidia.com/v1alpha1`, one file each, with spec, status and constants."""
