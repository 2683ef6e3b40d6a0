"""What is true now, as conditions and counts. Pure: computed from what the API server returned."""
