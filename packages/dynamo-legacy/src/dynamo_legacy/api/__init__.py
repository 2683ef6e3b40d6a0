"""The API of the older generation: four kinds of `nvidia.com/v1alpha1`, one module each."""
