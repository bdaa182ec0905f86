"""The documentation site: written pages, and pages generated from Subak's declarations."""

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pages
from subak import __version__

project = "Subak"
author = "the Subak project"
version = release = __version__
extensions = ["myst_nb", "equations", "sphinx.ext.autodoc"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "schemes", "optimizers", "transports"]
exclude_patterns += ["generated/gallery.md", "generated/glossary.md"]
# Each build of the site runs the notebooks; a notebook that fails makes the build fail.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
# The default of 30 s a cell is too short for a busy machine.
nb_execution_timeout = 600
logging.getLogger("traitlets").setLevel(logging.WARNING)
html_theme = "furo"
html_title = f"Subak {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
suppress_warnings = ["misc.highlighting_failure"]

pages.write(Path(__file__).parent)
