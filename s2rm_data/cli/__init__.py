"""Commands. The only part that prints."""

import sys
from pathlib import PurePath

_PROGRAMS = (("s2rm-data",), ("s2rm-train",), ("s2rm-eval",), ("s2rm-reproduce",), ("s2rm_data", "__main__.py"))

# As a program, be ready for signals before anything else is imported. `-m` is what `python -m s2rm_data.cli.train` has
# in argv while it imports the packages above the module that it runs.
if sys.argv[:1] == ["-m"] or any(PurePath(*sys.argv[:1]).parts[-len(end) :] == end for end in _PROGRAMS):
    from s2rm_data.core.signals import begin_program

    begin_program("s2rm-data")
