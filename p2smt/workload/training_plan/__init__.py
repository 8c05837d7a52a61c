"""A strategy as a plan: its requests on a fixed matrix with programs, and what it was made for."""
