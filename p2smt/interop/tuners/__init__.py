"""Files that tell a library which algorithm to run, by collective, communicator and size.

:mod:`choices` is the shape that all of them share, :mod:`formats` the table of them; a module a
family of formats reads and writes it, and says what a library makes of a file.
"""
