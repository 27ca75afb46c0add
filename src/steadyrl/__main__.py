"""`python -m steadyrl`, the same as `steadyrl`."""

import os
import sys

# `-m` puts the current folder first; see `cli.main`.
if sys.path and sys.path[0] == os.getcwd():
    del sys.path[0]

from steadyrl.cli import main

main()
