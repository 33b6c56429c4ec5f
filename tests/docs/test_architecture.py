"""The tree matches docs/project/modules.md: which modules exist, and which of them each one imports."""

import ast
import re
from pathlib import Path

import pytest

import onnxpool

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "onnxpool"
# Packages that are one module of the page.
WHOLE = ("commands", "dask", "kernels", "ndimage", "onnx", "onnxruntime", "operators", "xarray")
GENERATED = [Path(onnxpool.__file__).parent / name / "__init__.py" for name in ("operators", "dask", "xarray")]
CYTHON = re.compile(r"^from (\.*[\w.]*) c?import (\([^)]*\)|.*)", re.MULTILINE)


def listed():
    """The modules of the page from top to bottom, each with the modules that it imports."""
    text = (ROOT / "docs" / "project" / "modules.md").read_text(encoding="utf-8").partition("\nFiles of packages")[0]
    rows = re.findall(r"^\| `([\w.]+)` \|.*\|(.*)\|$", text, re.MULTILINE)
    return {name: set(re.findall(r"`([\w.]+)`", cell)) for name, cell in rows}


def relative(path):
    """The path within the package of a source file or a generated file."""
    return path.relative_to(Path(onnxpool.__file__).parent if path in GENERATED else PACKAGE)


def module_of(path):
    """The name of a file's module within the package; files that the page treats as one module share a name."""
    parts = relative(path).with_name(path.name.partition(".")[0]).parts
    if parts[0] in WHOLE:
        return whole(parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and parts[:-1] else parts)


def whole(parts):
    """The module of a file in a package that is one module. Headers of the core are another module, because planning
    uses them too."""
    return "kernels.core" if parts[:2] == ("kernels", "core") else parts[0]


def imported(path):
    """The modules of the package that a file imports, including for annotations: pairs of a base and a name in it."""
    here = ("onnxpool", *relative(path).parts[:-1])
    text = path.read_text()
    found = []
    if path.suffix in (".py", ".in"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                base = here[: len(here) + 1 - node.level] if node.level else ()
                found += [(*base, *(node.module or "").split("."), alias.name) for alias in node.names]
            elif isinstance(node, ast.Import):
                found += [tuple(alias.name.split(".")) for alias in node.names]
    else:
        for source, names in CYTHON.findall(text):
            level = len(source) - len(source.lstrip("."))
            base = here[: len(here) + 1 - level] if level else ()
            found += [(*base, *source[level:].split("."), name) for name in re.findall(r"\w+", names)]
    return [tuple(filter(None, parts))[1:] for parts in found if parts[0] == "onnxpool"]


def imports():
    """For each module of the page, the other modules of the page that it imports."""
    files = [path for suffix in ("py", "pyx", "pxi", "pxd") for path in PACKAGE.rglob(f"*.{suffix}")]
    files += [PACKAGE / "version.py.in", *GENERATED]
    known = {module_of(path) for path in files}
    graph = {name: set() for name in known}
    for path in files:
        module = module_of(path)
        for parts in imported(path):
            names = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
            target = next((name for name in names if name in known), "__init__")
            if parts and parts[0] in WHOLE:
                target = whole(parts)
            if target != module:
                graph[module].add(target)
    return graph


def test_the_page_lists_every_module():
    assert set(listed()) == set(imports()) - {"planning"}


def test_the_maps_name_every_file():
    """Each file of a package that the page treats as one module is named on one of the maps."""
    pages = (ROOT / "docs/architecture.md", ROOT / "docs/project/modules.md", PACKAGE / "kernels/README.md")
    maps = [path.read_text(encoding="utf-8") for path in pages]
    named = {name.rpartition("/")[2] for text in maps for name in re.findall(r"`([\w./]+)`", text)}
    files = {path for suffix in ("py", "pyx", "pxi", "pxd", "h", "in") for path in PACKAGE.rglob(f"*.{suffix}")}
    unnamed = {path.relative_to(PACKAGE).as_posix() for path in files
               if module_of(path).partition(".")[0] in WHOLE and path.stem != "__init__" and path.name not in named}
    assert unnamed == set()


def test_modules_import_what_the_page_says():
    found, named = imports(), listed()
    assert {name: found[name] for name in named} == named


def test_modules_import_only_what_is_below_them():
    order = list(listed())
    above = [(name, other) for name, others in imports().items() for other in others
             if name in order and order.index(other) < order.index(name)]
    assert above == []


def test_the_map_of_the_source_has_every_folder():
    """The map lists each package and each folder of the repository, and no others."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Source map")[2].partition("\n## ")[0]
    named = {path.rstrip("/") for path in re.findall(r"`([\w/]+/)`", text)}
    packages = {path.parent.relative_to(ROOT).as_posix() for path in PACKAGE.glob("*/*.py")}
    folders = {name for name in ("benchmarks", "docs", "examples", "tests", "tools") if (ROOT / name).is_dir()}
    assert named == packages | folders | {"src/onnxpool"}


def test_every_file_is_installed():
    """A meson.build lists every file of the package, because wheels lack files that are not listed."""
    named = {build.parent / name for build in PACKAGE.rglob("meson.build")
             for name in re.findall(r"'([\w./]+\.pyi?)'", build.read_text())}
    files = {path for suffix in ("py", "pyi") for path in PACKAGE.rglob(f"*.{suffix}")}
    assert files - named == set()
