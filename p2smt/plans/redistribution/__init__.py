"""A planned redistribution as a value and a file, and its check."""
