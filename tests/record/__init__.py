"""Everything that a user of the command line sees, kept as text: a change of it shows as a diff.

``commands/`` lists command lines, ``files/`` has what they read, ``golden/`` what they print and
write.  ``scenes`` reads the first, ``play`` runs them, ``shown`` words the outcome, ``masks`` and
``schemas`` leave out what must not count; ``renew`` writes ``golden/`` anew (``make record``).
"""
