"""Plans of at most so many steps, by way of the solvers."""
