"""The project's own schedule files (docs/schedule-file.md).

``schedule_file`` reads one, ``instance`` fills in its parameters, ``schedule_text`` writes the
canonical form.
"""
