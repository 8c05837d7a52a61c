"""Files of other tools.

A folder holds one format.  Of a schedule format, in reading order:

- ``elements`` or ``execution_plan``: what a file holds, as frozen types with line numbers;
- ``parse``: ``parse_X(text, source)``, a text as those types; what no file of the format may say
  is an error here;
- ``read``: ``read_X(text, source, reading)``, the schedule that those types mean; what the
  checker can judge is kept, even if it is wrong.  ``FORMAT`` is what the schedule calls it;
- ``write``: ``write_X(schedule)``, the text that means the same, or what the format cannot say;
- ``runtime_warnings``: ``warnings_of(..)``, what the runtime makes of a file besides what it says;
- beside them what is an idea of its own: text checked as it is taken apart (``checked_xml``,
  ``checked_json``), sizes of buffers, which operation does what a step does.

``X`` is the folder's name.  ``reading`` has what a reader is told beside the file, and
``schedule_files`` the table of formats.  To add one: a folder with these five, and a row of
``schedule_files.FORMATS``; docs/schedules.md says what its steps mean.

``nccl_tests`` holds measurements, not schedules, and writes nothing: ``elements`` (tables of
times), ``parse_text`` with ``parse_row`` and ``devices`` (what is printed), ``parse_json`` (the
``-J`` report), ``ranks`` (what ran on how many ranks: rows against what the file says), ``read``
(tables with what it takes to place them), ``samples`` and ``files`` (what a calibration takes).

``clusters`` has what tells of clusters: a format is a reader that takes facts from a text
(``facts``: switches and hosts outside, levels inside a node, or all levels), and a row of
``clusters.read.formats``, which puts several together.  ``clusters.nodes`` has those of nodes,
``clusters.astra_sim`` networks of ASTRA-sim, which are written, too.

``arrays`` has the types of arrays as PyTorch, JAX and Shardy write them, plans as functions for
JAX (``shard_map``), and what other planners do (``peers``).

``launchers`` holds what starts ranks: ``places`` (the host and device of each rank of a plan), a
file for each launcher, and ``exports`` beside them is the table of all that a plan is exported to.

``models`` reads what Hugging Face says of a model, ``trainers`` writes a strategy as programs that
train take it (``table`` has them), also from a plan (``plan_writer``).
"""
