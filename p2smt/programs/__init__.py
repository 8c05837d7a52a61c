"""Reduction programs, and what they mean.

``program`` says what one is, and what it rests on that a list has all of them; ``semantics`` with
``preconditions`` what one does: THE SPECIFICATION that every answer is held against.  ``check``
applies it, with runs of rows and the small factors of a quotient where the real ones are too large.
``exchanges`` is the same for an all-to-all, whose programs are all-to-alls: it follows blocks.
``parts`` has the slices of groups that levels cut unequally, and the check on those.
"""
