"""Text of users: YAML and JSON read as checked data, files written whole or not at all."""
