"""Conversion between `nvidia.com/v1alpha1` and `nvidia.com/v1beta1`: of one object, without a cluster."""
