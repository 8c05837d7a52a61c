"""Collectives by name, and what each is given and must produce."""
