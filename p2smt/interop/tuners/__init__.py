"""Files that tell a library which algorithm to run, by collective, communicator and size.

:mod:`choices` is the shape that all share, :mod:`formats` the table of formats; a module a family
of formats reads it and says what a library makes of a file.  NCCL's family: :mod:`rules` is what
its libraries do with rows, :mod:`nccl` and :mod:`ncclx` how they read them, :mod:`regions` what a
library chooses by size, :mod:`measured` where tables show a gain, :mod:`writers` the files.
"""
