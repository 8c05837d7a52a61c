"""Constraint-solver-based synthesis of parallelism placements and reduction programs."""
