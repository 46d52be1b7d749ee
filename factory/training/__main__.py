"""`python -m factory.training`: the driver of a run, with its launch in Pipes extras."""

import sys

from factory.training.driver import main

if __name__ == "__main__":
    sys.exit(main())
