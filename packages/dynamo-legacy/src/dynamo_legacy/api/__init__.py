"""What users of the older generation write: four kinds of `nvidia.com/v1alpha1`, one file each."""
