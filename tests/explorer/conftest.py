"""What the tests of the page share: one browser view per module, opened anew for each test.

A module gives ``path``, its page.
"""

import pytest

from .examples import View, chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def shared(browser, path):
    view = View(browser, path)
    yield view
    view.close()


@pytest.fixture
def view(shared, path):
    """The page as it opens; every test ends without an error and without a request."""
    shared.open(path)
    yield shared
    shared.check()
