"""Time of steps, programs and requests on a cluster, and proved bounds.

In reading order: ``routing`` (messages on one level), ``rings`` and ``trees`` (what follows the
order of a group's members), ``level_use`` (who shares which link), ``footprint`` (a closed form;
device by device in ``footprint_explicit``), ``algorithms`` (what each sends), ``alpha_beta`` (time
of a step), ``pipeline`` (chunks), ``scene`` (whole requests on a placement), ``bounds``.
"""
