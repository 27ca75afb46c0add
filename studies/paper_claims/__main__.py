"""Write the page of claims and the table in README.md from the results files in docs/results.

python -m studies.paper_claims             # the two pages
python -m studies.paper_claims --figures   # and the figures of each results file, beside it
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from studies.paper_claims.claims_file import read_claims
from studies.paper_claims.page import Pages, draw_figures, results_file, with_block

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write what has changed."""
    parser = argparse.ArgumentParser(description="The paper, claim by claim.")
    parser.add_argument("--figures", action="store_true", help="draw the figures of the results files too")
    folder = ROOT / "docs" / "results"
    domains, claims = read_claims()
    if parser.parse_args(arguments).figures:
        for name in domains:
            if results_file(folder, name).is_file():
                draw_figures(folder, name)
    pages, readme = Pages(folder, domains, claims), ROOT / "README.md"
    for path, text in (
        (folder / "README.md", pages.claims_page()),
        (readme, with_block(readme.read_text(), pages.readme_table())),
    ):
        path.write_text(text)
        print(f"Written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
