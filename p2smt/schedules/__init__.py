"""Collective schedules, chunk by chunk: one representation for all formats, checked and priced.

``model`` is the representation; ``memory_cells``, ``index`` and ``multisets`` look things up in it,
such as messages that nobody needs.
``language``: schedule files of our own.  ``construction``, ``classics``, ``lower``: schedules from
moves, from textbooks, from programs.  ``order``, ``races``, ``verify``: what must come before what,
what the rest may do, and the verdict.  ``families``: proofs for many sizes.  ``cost``: times.
Other formats are in :mod:`p2smt.interop`.
"""
