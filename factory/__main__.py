"""`factory`: the command line. Thin: the commands are in `factory/cli`."""

import sys

from factory.cli.app import run


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
