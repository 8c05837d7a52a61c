"""Requests, programs and plans with their times: for people, for ``--json``, and as pictures."""
