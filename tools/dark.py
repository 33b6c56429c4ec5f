"""Adapt matplotlib's SVG figures to light and dark pages: a style sheet replaces their colours on dark pages."""

from onnxpool.pictures import COLOURS

# The colours of window pictures, and further colours: black, line greys, and curve colours.
DARK = {
    **dict(COLOURS.values()), "#000000": COLOURS["ink"][1], "#777777": "#9aa4ae", "#888888": "#9aa4ae",
    "#cccccc": "#3d444d", "#dddddd": "#3d444d", "#0072b2": "#56b4e9", "#d55e00": "#f5843c", "#009e73": "#2dbd92",
}


def adapted(svg: str) -> str:
    """The SVG source of a figure, with the style sheet for dark pages."""
    rules = [f'[style*="{kind}: {light}"]{{{kind}:{dark} !important}}' for kind in ("fill", "stroke")
             for light, dark in DARK.items() if f"{kind}: {light}" in svg]
    head, end, rest = svg.partition("</style>")
    return f"{head}\n@media (prefers-color-scheme: dark) {{text{{fill:{DARK['#000000']}}}{''.join(rules)}}}{end}{rest}"
