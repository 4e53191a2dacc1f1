"""`python -m eigenlib` is the `eigenlib` command, which is the course's."""

import runpy

runpy.run_module("eigencourse", run_name="__main__")
