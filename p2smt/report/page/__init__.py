"""A report to hand on: one page of a file, or a few lines in the terminal.

In reading order: :mod:`answer` is what a plan file says of the search that found it; :mod:`story`
what a report tells, whatever the file, with :mod:`words`; :mod:`reading` takes values and names out
of files; :mod:`sources` tells files apart, and :mod:`training`, :mod:`placements`,
:mod:`redistributions`, :mod:`schedules` and :mod:`pairs` (two files) make their stories, of
sections that :mod:`cluster_map` and :mod:`links` share.  :mod:`charts` draws what needs no script,
:mod:`html` writes the page, whose script and style lie beside it, and :mod:`terminal` the lines.
"""
