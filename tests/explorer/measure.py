"""How fast the page is: the time to its first picture, and frames per second while dragging.

``python -m tests.explorer.measure [--nodes 5000] [--degree 8] [--seconds 3]`` prints one line for
each kind of drag, with a real mouse in Chromium without a graphics card. Frames are counted by
``requestAnimationFrame``; the screen of Chromium has 60 per second, 16.7 ms each. The work is the
processor time of the page's main thread per frame, which a loaded machine changes little. It says
what it finds and asserts nothing.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from .examples import View, chromium, graph, train, write_page

#: What the page notes while a drag lasts: when every frame began.
COUNT = """() => {
  window.frames_ = [];
  const tick = (now) => { window.frames_.push(now); window.ticking = requestAnimationFrame(tick); };
  window.ticking = requestAnimationFrame(tick);
}"""
STOP = "() => { cancelAnimationFrame(window.ticking); return window.frames_; }"
FIRST = "() => performance.getEntriesByName('drawn')[0]?.startTime ?? NaN"


class Clock:
    """Frames and the processor time of the main thread while something is done."""

    def __init__(self, view):
        self.view = view
        self.session = view.context.new_cdp_session(view.page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def work(self):
        """Seconds of the main thread until now."""
        found = self.session.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in found if m["name"] == "TaskDuration")

    def __enter__(self):
        self.view.evaluate(COUNT)
        self.begun = self.work()
        return self

    def __exit__(self, *error):
        self.seconds = self.work() - self.begun
        self.frames = np.diff(self.view.evaluate(STOP))

    def describe(self, name):
        """One line: frames per second, how long most took, and the work of one."""
        rate, slow = 1000 / self.frames.mean(), np.quantile(self.frames, 0.95)
        each = 1000 * self.seconds / len(self.frames)
        print(f"{name:32} {rate:5.1f} frames/s, 95 % within {slow:3.0f} ms, work {each:4.1f} ms")


def drag(clock, name, seconds, *, across):
    """Move the mouse to and fro over an element with the button down."""
    page = clock.view.page
    field = page.locator(name).first
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    with clock:
        start = time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            way = across * np.sin(2 * np.pi * passed / 1.5)
            up = 0 if name != "#graph" else 0.5 * across * np.sin(2 * np.pi * passed / 1.1)
            page.mouse.move(x + way * box["width"], y + up * box["height"])
            time.sleep(0.004)
    page.mouse.up()
    clock.view.settle()


def press(clock, seconds):
    """Move the upright slider of a coefficient by keys, as fast as they come."""
    keyboard = clock.view.page.keyboard
    clock.view.page.locator("#coefficients input").nth(1).focus()
    with clock:
        start = time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            keyboard.press("ArrowUp" if passed % 1 < 0.5 else "ArrowDown")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--degree", type=float, default=8, help="edges per node, both ways")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--page", type=Path, help="a page to measure instead of a new one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        path = options.page
        if path is None:
            data = graph(num_nodes=options.nodes, degree=options.degree)
            path = write_page(Path(folder) / "page.html", train(data, epochs=20, degree=10))
        first = []
        for _ in range(5):
            view = View(browser, path)
            first.append(view.evaluate(FIRST))
            view.close()
        nodes, size = options.nodes, path.stat().st_size / 1e6
        print(
            f"{nodes} nodes, page of {size:.1f} MB; first picture after {np.median(first):.0f} ms"
        )
        view = View(browser, path)
        clock = Clock(view)
        drag(clock, "#a", options.seconds, across=0.4)
        clock.describe("slider a")
        view.set("#colour", "filtered")
        drag(clock, "#a", options.seconds, across=0.4)
        clock.describe("slider a, signal on the graph")
        press(clock, options.seconds)
        clock.describe("coefficient, signal on the graph")
        drag(clock, "#epoch", options.seconds, across=0.4)
        clock.describe("epochs, signal on the graph")
        drag(clock, "#graph", options.seconds, across=0.3)
        clock.describe("the graph")
        assert view.errors == []
        view.close()


if __name__ == "__main__":
    main()
