"""Settings of the documentation site: `make docs` builds it in docs/_build/html."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

import steadyrl  # noqa: E402

project = "steadyrl"
author = "the authors of steadyrl"
release = version = steadyrl.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated_pages", "own_docstrings"]
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
smartquotes = False
default_role = "code"  # Docstrings write code between single backticks.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"steadyrl {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"
