"""The shape of what `solve --explain` says."""
