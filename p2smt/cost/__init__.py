"""Time of steps, programs and requests on a cluster, and proved bounds.

In reading order: ``loads`` (who shares which link), ``algorithms`` (what each sends), ``step_time``
(a step's time by its payload, and by chunks), ``library`` (what communication libraries run, and
its price), ``scene`` (whole requests on a placement), ``bounds`` and ``link_bounds`` (what nothing
is below), ``regime`` (what decides a time), ``accuracy`` (the range of a price, and what it rests on),
``symbolic`` (costs before any number is put in).
"""
