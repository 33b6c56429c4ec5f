"""Configuration of the documentation site. `sphinx-build -W -b html docs build/docs` builds it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_site"), str(HERE.parent / "tools")]

from gallery import LIST, Figures  # noqa: E402
from links import HOME  # noqa: E402

import onnxpool  # noqa: E402

project, author = "onnxpool", "The onnxpool developers"
copyright = author  # noqa: A001
version = release = onnxpool.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "keywords",
    "links",
    "pages",
]
root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["README.md", "_site", "_static", "_templates"]
default_role = "py:obj"  # what single backticks mean in docstrings: a link, if there is something of that name
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
highlight_language = "none"  # blocks of no language are commands and formulas
smartquotes = False  # they would turn the -- of options into a dash
suppress_warnings = ["config.cache", "myst.header"]  # a class in the settings of the gallery; headings of pages
maximum_signature_line_length = 88

autodoc_typehints = "none"  # docstrings say more
autosummary_generate = True
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": LIST,
    "image_scrapers": (Figures(),),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 5,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

# `sphinx-build -b linkcheck docs build/links` follows the links to other sites. Links to files of the repository are
# checked without a network: see tests/project/test_packaging.py.
linkcheck_ignore = [rf"{HOME}/(?:blob|tree)/main/", rf"{HOME}/security/", r"http://(?:localhost|127\.0\.0\.1)\b"]
linkcheck_anchors_ignore_for_url = [r"https://github\.com/"]  # scripts make these anchors
linkcheck_timeout, linkcheck_retries, linkcheck_workers = 30, 3, 2

html_theme = "pydata_sphinx_theme"
html_title = "onnxpool"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_site" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "github_url": HOME,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
