"""`python -m causeline.engine` is the command line."""

from .cli import main

main()
