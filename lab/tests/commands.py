"""The commands of the laboratory as tests use them."""

import functools

from lab.__main__ import app
from tests import commands

run = functools.partial(commands.longnn, app=app)
succeed = functools.partial(commands.succeed, app=app)
succeed_json = functools.partial(commands.succeed_json, app=app)
fail = functools.partial(commands.fail, app=app)
