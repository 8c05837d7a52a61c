"""Is a schedule right in every interleaving?

``verify`` makes the checks in their order: ``structure``, ``progress`` and ``deadlock``, the values
after a run, and races (``schedules.races``). ``report`` is what it says; ``explain`` and ``repair``
help to mend.
"""
