"""Is a schedule right in every interleaving?

``verify`` makes the checks in their order: ``structure``, ``deadlock`` (whose turn never comes),
the ``contributions`` after a run, and races.  ``report`` is what it says; ``why_wrong`` and
``repair`` help to mend.
"""
