"""The gallery: its order, and its figures as SVG with colours for dark pages."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from dark import adapted
from sphinx_gallery.scrapers import matplotlib_scraper

ORDER = ("blur_and_downsample", "dilation_of_a_mask", "moving_average", "peaks", "argmax_and_back", "ceil_mode",
         "pyramid", "spatial_pyramid", "generalised_mean", "regions")


class LIST:
    """A key for scripts: their place in the list."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, script: str) -> int:
        """The place of a script."""
        return ORDER.index(Path(script).stem)

    def __repr__(self) -> str:
        return "LIST"


class Figures:
    """Saves the figures of a script."""

    def __call__(self, block: Any, variables: dict[str, Any], settings: dict[str, Any]) -> str:
        """The directives that show them."""
        files = variables["image_path_iterator"].paths
        known = len(files)
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gallery"}):
            shown: str = matplotlib_scraper(block, variables, settings, format="svg", metadata={"Date": None})
        for file in files[known:]:
            path = Path(file).with_suffix(".svg")
            path.write_text(adapted(path.read_text(encoding="utf-8")), encoding="utf-8")
        return shown

    def __repr__(self) -> str:
        return "Figures"
