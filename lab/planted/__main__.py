"""``python -m lab.planted``: needs nothing but the standard library and what the tests need."""

from lab.planted.runner import main

if __name__ == "__main__":
    main()
