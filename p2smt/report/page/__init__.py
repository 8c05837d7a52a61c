"""A report to hand on: one page of a file, or a few lines in the terminal.

In reading order: :mod:`answer` is what a plan file says of the search that found it; :mod:`story`
what a report tells, whatever the file; the readers (:mod:`training`, :mod:`placements`,
:mod:`steps`, :mod:`pairs`) make stories of files, and :mod:`sources` chooses among them;
:mod:`charts` draws, :mod:`cluster_map` lays out devices, and :mod:`html` writes the page.
"""
