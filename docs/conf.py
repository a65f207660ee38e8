"""How the site is built: ``make docs``, then open ``build/docs/index.html``.

Nothing on a page asks the network for anything: formulas are MathML, figures and scripts are files.
"""

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]
# Notebooks run in processes of their own: they see this checkout, and one thread each.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONPATH"] += os.pathsep + str(HERE / "_ext")
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["COLUMNS"] = "88"
# Kernels are reached over the loopback address, and need not warn about it in every build.
os.environ["IPYTHONDIR"] = tempfile.mkdtemp(prefix="longnn-docs-")
atexit.register(shutil.rmtree, os.environ["IPYTHONDIR"], ignore_errors=True)
PROFILE = Path(os.environ["IPYTHONDIR"]) / "profile_default" / "ipython_kernel_config.py"
PROFILE.parent.mkdir()
PROFILE.write_text("c.IPKernelApp.log_level = 40\n")

from reference import table_of_names  # noqa: E402

from longnn import __version__  # noqa: E402

#: As in +0.62 [-0.28, +1.38].
INTERVAL = re.compile(r"\[([-+][\d.]+), ([-+][\d.]+)\]")
#: As in 88.5 ± 0.7, and 12 / 3.4.
SPACED = re.compile(r"(?<=\d) ([±/]) (?=\d)")

project = "longnn"
author = "The longnn developers"
project_copyright = author
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "reference",
    "offline",
]
exclude_patterns = ["_ext", "_static", "_build"]

# Pages: MyST Markdown.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Notebooks: MyST Markdown too, executed once per build.
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_output_stderr = "remove-warn"  # what a page should show is printed
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
nb_render_image_options = {"align": "center"}

# Docstrings: reStructuredText with the sections of Google's style.
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"longnn {release}"
html_static_path = ["_static"]
html_css_files = ["longnn.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # a page that is opened from disk may not read others
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f4e79", "color-brand-content": "#1f5f99"},
    "dark_css_variables": {"color-brand-primary": "#8fc1ee", "color-brand-content": "#8fc1ee"},
    "footer_icons": [],
}
pygments_style = "friendly"
pygments_dark_style = "monokai"


def whole_cells(text: str) -> str:
    """Markdown whose tables keep 88.5 ± 0.7, [-0.28, +1.38] and 12 / 3.4 on one line each."""

    def whole(line: str) -> str:
        if not line.startswith("|"):
            return line
        return SPACED.sub("\u00a0\\1\u00a0", INTERVAL.sub("[\\1,\u00a0\\2]", line))

    return "\n".join(map(whole, text.split("\n")))


def setup(app):
    """Pages that are read elsewhere too get on the site what only a site has."""

    def skip(app, what, name, found, skipped, options):
        """Of methods that scikit-learn gives its estimators, the reference is scikit-learn's."""
        return True if name.startswith("set_") and name.endswith("_request") else None

    def read(app, name, source):
        if name.startswith("results/"):
            source[0] = whole_cells(source[0])
        if name == "results/index":
            source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n[!i]*\n```\n"
        if name == "api/index":
            source[0] += table_of_names()

    app.connect("autodoc-skip-member", skip)
    app.connect("source-read", read)
