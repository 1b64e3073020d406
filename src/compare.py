"""Compare finished runs: `python src/compare.py FOLDER…` prints one table over all runs below the folders."""

import argparse

from had.reports.comparison import find_jobs, overview_table, show
from had.reports.tables import markdown


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", help="run folders, or folders that hold some")
    parser.add_argument("--markdown", action="store_true", help="for a page instead of a terminal")
    arguments = parser.parse_args()
    table = overview_table(find_jobs(*arguments.folders))
    if arguments.markdown:
        print(markdown(table))
    else:
        show(table)


if __name__ == "__main__":
    main()
