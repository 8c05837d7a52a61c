"""Models by name: YAML files, and the shape of such a file."""
