"""A report to hand on: one page of a file, or a few lines in the terminal.

In reading order: :mod:`answer_part` is what a plan file says of the search that found it;
:mod:`story` what a report tells, whatever the file, with :mod:`words`; :mod:`reading` takes values
and names out of files; :mod:`sources` tells files apart, and :mod:`training_story`,
:mod:`placement_story`, :mod:`redistribution_story`, :mod:`schedule_story` and :mod:`pair_story`
(two files) make their stories, of sections that :mod:`cluster_map` and :mod:`link_section` share.
:mod:`charts` draws what needs no script, :mod:`html` writes the page, whose script and style lie
beside it, and :mod:`story` the lines.
"""
