"""The order of the gallery."""

from pathlib import Path

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
