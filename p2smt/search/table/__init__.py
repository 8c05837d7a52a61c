"""What the table of bounds is made of.

``entries`` are its rows, by what the solver sees of a request: all of it, or nothing.  Where there
are few enough matrices, ``matrices`` lists them, ``scenes`` says which row each of them falls into,
and ``least`` names the one of least cost; else a solver does.
"""
