"""``tune``: open the storage, run this worker's share of the search, write what it gave."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage, InMemoryStorage

from longnn._base.files import write_json, write_text
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.report import metric_name
from longnn.tuning._cost import Estimate
from longnn.tuning._ledger import Ledger
from longnn.tuning._page import RECIPE, gain_text, shown_score, write_page
from longnn.tuning._record import RECORD, VERSIONS, SearchRecord, TrialRecord
from longnn.tuning._search import OnProgress, Search
from longnn.tuning._space import SearchSpace, load_space
from longnn.tuning._start import space_around
from longnn.tuning._storage import (
    close_storage,
    default_url,
    open_storage,
    quiet_optuna,
    shown_url,
)
from longnn.tuning._training import Halving

OnEstimate = Callable[[Estimate], None]


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """A finished search.

    Args:
        config: the winner.
        record: everything else, as it is in ``tuning.json``.
        folder: where it was written; None if it was not.
    """

    config: Config
    record: SearchRecord
    folder: Path | None

    @property
    def value(self) -> float:
        """The winner's mean validation score, over the splits of the finalists too."""
        return self.record.value

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """All trials in the order of their numbers."""
        return self.record.trials

    def sentence(self) -> str:
        """The score of the winner, and what it gained over the start on the same splits."""
        record = self.record
        score = f"validation {metric_name(record.metric)} {shown_score(record, record.value)}"
        return score if record.start is None else f"{score}, {gain_text(record)}"

    def write_recipe(self, path: str | Path) -> Path:
        """Write the winner as TOML, for :meth:`Config.from_toml` and ``longnn train --config``."""
        record = self.record
        seeds = [*record.seeds, *record.finalists.seeds]
        versions = ", ".join(f"{name} {record.environment[name]}" for name in VERSIONS)
        header = [
            f"Recipe for {record.model} on {record.dataset.name}, found by longnn tune.",
            f"Trial {record.best.number} of a search with {record.finished} trials and "
            f"{record.repeats} repeats per trial in the space {record.space.name!r}.",
            f"Validation {metric_name(record.metric)}: {shown_score(record, record.value)}, the "
            f"mean over the tuning splits with seeds {seeds[0]} to {seeds[-1]}. No test node was "
            "used.",
            *([f"On the same splits: {gain_text(record)}."] if record.start is not None else []),
            f"Versions: {versions}.",
        ]
        # A dataset's name may hold any character, but a comment ends with its line.
        printable = ("".join(c if c.isprintable() else " " for c in line) for line in header)
        comments = [f"# {' '.join(line.split())}" for line in printable]
        write_text(Path(path), "\n".join([*comments, "", *self.config.to_toml(), ""]))
        return Path(path)


def tune(
    dataset: NodeDataset,
    space: SearchSpace | Mapping[str, Any] | str | Path | None = None,
    *,
    model: str | None = None,
    around: Config | None = None,
    default: bool = True,
    trials: int = 400,
    repeats: int = 3,
    batch: int | None = None,
    storage: str | BaseStorage | None = None,
    name: str | None = None,
    folder: str | Path | None,
    split: str | None = None,
    scale: str = "auto",
    seed: int = 0,
    device: str = "auto",
    halving: bool | Halving = True,
    finalists: int = 8,
    on_progress: OnProgress | None = None,
    on_estimate: OnEstimate | None = None,
    data_dir: str | Path | None = None,
) -> TuningResult:
    """Search for the configuration with the best mean validation score.

    Call it again with the same arguments to continue after an interruption. Call it in several
    processes to share the work; each returns when the whole search is finished. No test node is
    used.

    The first trial is the default: what plain training of one model would use on this data, as far
    as the space does not fix other values. Halving does not stop it. Where the space lacks a value
    of it, the space is widened by that value, so the default is a trial like the others, and may
    win. What the space does not mention has the default's value in every trial.

    Args:
        dataset: the graph, its features and labels.
        space: a name (``"default"``, ``"paper"``, ``"wide"``, ``"compact"``), a TOML file, its
            table, or a :class:`SearchSpace`; None for the one around ``around``, or ``"default"``.
        model: the name of the model, see ``longnn models``; None for that of ``around``,
            or ``"lon"``.
        around: a configuration to start with instead of the default. Its seed, repeat and device
            are ignored.
        default: whether to start with the default; if not, the first trial is drawn, too.
        trials: how many to finish in total, with those of earlier calls and of other workers.
        repeats: trainings per trial, on their own tuning splits (seeds 1000, 1001, ...).
        batch: trials trained together; by default 8 on a CPU and 64 on a GPU. It is halved when
            memory runs out.
        storage: an Optuna storage URL or object (:func:`~longnn.tuning.open_storage`); by default
            the SQLite file ``search.db`` in the folder.
        name: of the search in its storage; by default DATASET-MODEL.
        folder: for the storage, the record ``tuning.json``, ``recipe.toml``, figures and page.
            None keeps the search in memory and writes nothing.
        split: the split protocol; None for the dataset's own.
        scale: the scaling of features, as in :class:`~longnn.config.Config`.
        seed: of the sampler. A search by a single worker can be repeated exactly.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        halving: stop the worse half of each batch at some epochs; a :class:`Halving` says when.
        finalists: the number of best trials to train again on further tuning splits. The best mean
            over all splits wins. With 0 the search alone decides.
        on_progress: called at each epoch with the state of the search.
        on_estimate: called before the search with its expected cost; a few epochs are timed for it.
        data_dir: the folder that a named dataset was read from, for the command on the page.

    Raises:
        ValueError: for an invalid argument, or a search that was started with other arguments.
        MemoryError: if a single trial does not fit the device.

    >>> from longnn.data import csbm
    >>> space = {"epochs": 2, "degree": 2, "dropout": {"choices": [0.1, 0.5]}}
    >>> graph = csbm(num_nodes=60, num_features=8)
    >>> result = tune(graph, space, trials=2, repeats=1, finalists=0, folder=None, device="cpu")
    >>> result.config.model, len(result.trials)
    ('lon', 2)
    """
    for key, value, least in (
        ("trials", trials, 1),
        ("batch", 1 if batch is None else batch, 1),
        ("finalists", finalists, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"Expected `{key}` to be an integer >= {least} (got {value!r})")
    model = model or ("lon" if around is None else around.model)
    if around is not None and around.model != model:
        raise ValueError(f"Expected `around` to be of model {model!r} (got {around.model!r})")
    if space is None:
        space = "default" if around is None else space_around(around)
    if around is not None:
        split = split or around.split
        scale = around.scale if scale == "auto" else scale
    search = Search(
        dataset,
        load_space(space, model),
        batch=batch,
        repeats=repeats,
        split=split,
        scale=scale,
        device=device,
        halving=Halving() if halving is True else halving or None,
        on_progress=on_progress,
        around=around,
        default=default,
    )
    if folder is not None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        storage = storage or default_url(folder)
    url = storage if isinstance(storage, str) else None
    with quiet_optuna():
        shared = storage if isinstance(storage, BaseStorage) else InMemoryStorage()
        if url is not None:
            shared = open_storage(url)
        try:
            ledger = Ledger(
                shared,
                name or f"{dataset.name}-{model}",
                search.agreement(),
                search.space,
                trials=trials,
                seed=seed,
                start=search.start,
                url=url,
            )
            expected = None if on_estimate is None else search.estimate(ledger, finalists)
            if on_estimate is not None and expected is not None:
                on_estimate(expected)
            search.run(ledger)
            shown = None if url is None else shown_url(url)
            record = search.finish(ledger, finalists, shown, data_dir)
        finally:
            if url is not None:
                close_storage(shared)
    result = TuningResult(search.config(record.best.params), record, folder)
    if folder is not None:
        write_json(folder / RECORD, record.to_dict())
        result.write_recipe(folder / RECIPE)
        write_page(folder, record)
    return result
