"""Reduction programs, and what they mean.

``program`` says what one is, ``semantics`` with ``preconditions`` what it does: THE SPECIFICATION
that every answer is held against.  ``check`` applies it, with runs of rows and the small factors of
a quotient where the real ones are too large, and says what a list of programs rests on.  ``parts``
has the slices of groups that levels cut unequally, and the check on those.
"""
