"""Time of steps, programs and requests on a cluster, and proved bounds.

In reading order: ``routing`` (messages on one level), ``footprint`` (who shares which link; device
by device in ``footprint_explicit``), ``algorithms`` (what each sends), ``alpha_beta`` (time of a
step), ``pipeline`` (chunks), ``scene`` (whole requests on a placement), ``bounds``.
"""
