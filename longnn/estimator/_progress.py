"""A line about training now and then, for ``verbose=1``."""

from typing import Any

from longnn.training import Population, Result

EVERY = 100  # epochs between lines


class Progress:
    """Prints how the first member of a population fares; called after each epoch.

    Args:
        epochs: the largest number of them.
    """

    def __init__(self, epochs: int) -> None:
        self.epochs, self.told = epochs, 0

    def __call__(self, population: Population) -> None:
        if population.epoch // EVERY == self.told // EVERY or population.epoch >= self.epochs:
            return
        self.told = population.epoch
        rows = {field: column[-1, 0].item() for field, column in population.rows.items()}
        print(f"epoch {self.told} of {self.epochs}: {_losses(rows)}")

    def finish(self, result: Result) -> None:
        """The last line: when training stopped and what it kept."""
        kept = {f: column[result.best_epoch - 1].item() for f, column in result.history.items()}
        print(
            f"stopped after {result.epochs} epochs ({result.stopped}), kept epoch "
            f"{result.best_epoch}: {_losses(kept)}"
        )


def _losses(rows: dict[str, Any]) -> str:
    return (
        f"training loss {rows['train_loss']:.4f}, validation loss {rows['val_loss']:.4f}, "
        f"validation score {rows['val_score']:.4f}"
    )
