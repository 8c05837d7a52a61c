"""The project's own schedule files (docs/schedule-file.md).

``file`` reads one, ``instance`` fills in its parameters, ``write`` writes the canonical form.
"""
