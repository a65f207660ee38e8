"""Numbers in sentences."""


def counted(number: int, noun: str) -> str:
    """A number of things: "1 node", "2 nodes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def was(number: int) -> str:
    """The verb after a number of things that something was done to."""
    return "was" if number == 1 else "were"


def have(number: int) -> str:
    """The verb after a number of things that have something."""
    return "has" if number == 1 else "have"
