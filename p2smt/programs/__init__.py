"""Reduction programs, and what they mean.

``program`` says what one is, ``semantics`` with ``preconditions`` what it does: THE SPECIFICATION
that every answer is held against.  ``check`` applies it, on small ``quotient`` factors where the
real ones are too large, and ``payload_rows`` counts what steps carry without any states.
``parts`` has the slices of groups that levels cut unequally, ``check_parts`` the check on those.
"""
