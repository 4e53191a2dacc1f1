"""`python -m eigenlib` is the `eigenlib` command."""

import sys

from eigenlib.cli import main

sys.exit(main())
