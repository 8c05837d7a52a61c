"""The public functions, as a program calls them."""
