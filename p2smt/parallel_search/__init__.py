"""Search of any space that splits into subproblems, on one process or many, with a journal.

``subproblem`` says how a space splits and is solved, ``coordinate`` hands subproblems out,
``state`` keeps what is open and what is proved, ``engines`` solve many at a time, ``journal``
writes it all down.
"""
