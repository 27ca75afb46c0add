"""`python -m steadyrl` is the command line."""

from steadyrl.cli import main

main()
