"""
The search of the site: questions of users lead to the page that answers them, among the first three results.

The tests need a built site, whose folder ONNXPOOL_SITE names. Without the variable, the tests count as slow and build
the site.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from chromium import Page, browser, program

ROOT = Path(__file__).parents[2]
BUILT = os.environ.get("ONNXPOOL_SITE")
FIRST = 3
pytestmark = [
    pytest.mark.skipif(program() is None, reason="Chromium is not installed"),
    pytest.mark.thread_unsafe(reason="drives one page of a browser"),
    *([] if BUILT else [pytest.mark.slow]),
]

# What users ask, in their words, and the page that answers.
QUESTIONS = {
    "why is my corner mean smaller?": "concepts/count_include_pad",
    "why is output size different from torch": "concepts/windows",
    "ceil_mode extra column": "concepts/ceil_mode",
    "average with padding wrong at border": "concepts/count_include_pad",
    "count_include_pad default torch": "concepts/count_include_pad",
    "divisor_override": "concepts/count_include_pad",
    "indices flattened": "concepts/indices",
    "auto_pad SAME_UPPER vs SAME_LOWER": "concepts/auto_pad",
    "tensorflow same padding different from pytorch": "concepts/auto_pad",
    "NaN in max pool": "howto/masks_and_nan",
    "channels last": "concepts/layouts",
    "nhwc to nchw": "concepts/layouts",
    "int8 average rounding": "concepts/rounding",
    "dilation": "concepts/dilation",
    "asymmetric pads": "concepts/pads",
    "max pool negative values zero padding": "concepts/pads",
    "different results with threads": "concepts/order_of_sums",
    "onnxruntime float64 averagepool not implemented": "howto/onnxruntime_sessions",
    "quantized average pool zero point": "howto/quantised_models",
    "maxunpool output size": "generated/operators/MaxUnpool",
    "roialign half pixel": "generated/operators/RoiAlign",
    "kernel larger than input": "reference/decisions",
    "specification ambiguous": "reference/decisions",
    "global average pool keepdims": "generated/operators/GlobalAveragePool",
    "maxpool numpy": "start/numpy",
    "sliding window maximum": "reference/array_peers",
    "moving average": "start/numpy",
    "median": "start/numpy",
    "gpu": "start/numpy",
    "gradient backward": "start/numpy",
    "opset": "operators",
    "quantized": "howto/quantised_models",
    "dynamic batch shape": "howto/check_in_ci",
    "NaN": "howto/masks_and_nan",
    "thread safe": "embedding",
    "GIL": "reference/threads",
    "memory limit": "embedding",
    "denial of service": "embedding",
    "latency": "embedding",
    "triton": "howto/triton",
    "python version": "compatibility",
    "windows macos wheel": "reference/builds",
    "security vulnerability": "embedding",
    "license": "project/index",
    "run tests": "project/contributing",
    "commit message": "project/contributing",
    "avx512 kernel": "project/contributing",
    "add opset": "project/adding",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    if BUILT:
        return Path(BUILT).resolve()
    for name in ("myst_parser", "sphinx_gallery", "pydata_sphinx_theme"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(folder)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page of a browser."""
    with browser() as one:
        yield one


def results(page: Page, site: Path, question: str) -> list[str]:
    """The pages that the search lists, as a reader without a server finds them."""
    page.open(f"{(site / 'search.html').as_uri()}?q={quote(question)}")
    until = time.monotonic() + 60
    while not page.run("/finished|did not match/.test(document.querySelector('#search-results > p')?.textContent)"):
        assert time.monotonic() < until, question
        time.sleep(0.02)
    links: list[str] = page.run("[...document.querySelectorAll('#search-results li a:first-of-type')].map("
                                "link => link.getAttribute('href'))")
    return list(dict.fromkeys(link.partition(".html")[0] for link in links))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_leads_to_its_answer(page: Page, site: Path, question: str) -> None:
    """The page that answers a question is among the first results. If it is not, correct the page's headings, its text,
    or docs/_site/keywords.py."""
    found = results(page, site, question)
    assert QUESTIONS[question] in found[:FIRST], found[:6]


def test_nonsense_leads_nowhere(page: Page, site: Path) -> None:
    """Nonsense has no results, so the other tests cannot pass by chance."""
    assert results(page, site, "xylophone of averages") == []


def test_the_answer_is_on_the_page(page: Page, site: Path) -> None:
    """A search for the first question leads a reader to the page with the reason."""
    found = results(page, site, next(iter(QUESTIONS)))
    page.open((site / f"{found[0]}.html").as_uri())
    text = page.run("document.querySelector('#why-is-my-corner-mean-smaller').innerText")
    assert "Because padding was counted" in text
