"""`python -m eigencourse` is the `eigenlib` command."""

import sys

from eigencourse.cli import main

sys.exit(main())
