"""Is a schedule right in every interleaving?

``verify`` makes the checks in their order: ``structure``, ``progress`` with deadlocks, the
``values`` after a run, and races.  ``report`` is what it says; ``explain`` and ``repair`` help to
mend.
"""
