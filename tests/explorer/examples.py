"""Runs, pages and a browser for the tests of the explorer."""

import contextlib
import shutil

import numpy as np
import pytest
import torch

from longnn import runs
from longnn.data import Source
from longnn.explorer import collect, unpack, write_explorer
from longnn.polynomials._chebyshev import evaluate_series


def graph(**options):
    """A small graph of two classes."""
    return Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8, **options})


def train(data=None, **options):
    """A run of a few epochs, in memory."""
    few = {"epochs": 4, "baselines": False, "device": "cpu", "preset": "fast"}
    return runs.train(graph() if data is None else data, {**few, **options})


def write_page(path, *found, **options):
    """The page of some runs as a file."""
    return write_explorer(collect(found, **options), path)


def dense_operator(packed):
    """An operator of the page as a dense matrix, (nodes, nodes), float64."""
    start, column, value = (unpack(packed[name]) for name in ("start", "column", "value"))
    P = np.zeros((len(start) - 1,) * 2)
    P[np.repeat(np.arange(len(P)), np.diff(start)), column] = value
    return P


def dense_filter(P, beta):
    """g(P) by eigendecomposition, one matrix per channel: (channels, nodes, nodes)."""
    eigenvalues, U = np.linalg.eigh(P)
    series = evaluate_series(torch.from_numpy(eigenvalues), torch.from_numpy(np.array(beta)))
    return np.stack([(U * g) @ U.T for g in series.numpy()])


@contextlib.contextmanager
def chromium():
    """Debian's Chromium, driven by Playwright; a skip where one of them is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium: install the package chromium")
    with playwright.sync_playwright() as driver:
        flags = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


class View:
    """A page in a browser that remembers what must not happen: errors and requests."""

    def __init__(self, browser, path, fragment="", *, width=1400, dark=False):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
        )
        self.page = self.context.new_page()
        self.errors, self.requests = [], []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.open(path, fragment)

    def open(self, path, fragment=""):
        address = path if str(path).startswith("http") else f"file://{path}"
        self.page.goto("about:blank")
        self.requests.clear()
        self.page.goto(f"{address}{fragment}")
        self.settle()

    def settle(self):
        """Wait until what was asked for is drawn."""
        self.page.evaluate("() => new Promise(r => requestAnimationFrame(() => setTimeout(r, 30)))")

    def evaluate(self, program, argument=None):
        return self.page.evaluate(program, argument)

    def set(self, name, value):
        """Move a slider, or choose from a list."""
        field = self.page.locator(name)
        choose = field.evaluate("e => e.tagName === 'SELECT'")
        field.select_option(value) if choose else field.fill(str(value))
        self.settle()

    def text(self, name):
        return self.page.locator(name).inner_text()

    def curve(self, chart, series):
        """A line as it is drawn, back in numbers: (points, 2)."""
        picture = self.page.locator(f"#{chart} svg")
        x0, x1, y0, y1 = map(float, picture.get_attribute("data-domain").split())
        left, right, bottom, top = map(float, picture.get_attribute("data-range").split())
        path = picture.locator(f"[data-series='{series}']").get_attribute("d")
        points = np.array([p.split(",") for p in path[1:].split("L")], dtype=float)
        x = x0 + (points[:, 0] - left) * (x1 - x0) / (right - left)
        y = y0 + (points[:, 1] - bottom) * (y1 - y0) / (top - bottom)
        return np.stack([x, y], 1)

    def check(self):
        """No error, and no request but for the page itself."""
        assert self.errors == []
        assert len(self.requests) == 1, self.requests

    def close(self):
        self.context.close()
