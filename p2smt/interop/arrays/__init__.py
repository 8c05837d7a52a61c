"""Layouts of frameworks, and plans as code for them."""
