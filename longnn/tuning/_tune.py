"""``tune``: open the storage, run this worker's share of the search, write what was found."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage, InMemoryStorage

from longnn.config import Config
from longnn.data import NodeDataset, known_names
from longnn.tuning._cost import Estimate
from longnn.tuning._halving import Halving
from longnn.tuning._ledger import Ledger
from longnn.tuning._page import write_page
from longnn.tuning._record import write_record
from longnn.tuning._result import RECIPE, TuningResult
from longnn.tuning._search import OnProgress, Search
from longnn.tuning._space import SearchSpace, load_space
from longnn.tuning._start import space_around
from longnn.tuning._storage import close_storage, open_storage, quiet_optuna
from longnn.tuning._urls import default_url, shown_url

OnEstimate = Callable[[Estimate], None]


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
    _check_integer("trials", trials, least=1)
    _check_integer("batch", 1 if batch is None else batch, least=1)
    _check_integer("finalists", finalists, least=0)
    model = model or ("lon" if around is None else around.model)
    if around is not None and around.model != model:
        raise ValueError(f"Expected `around` to be of model {model!r} (got {around.model!r})")
    if space is None:
        space = "default" if around is None else space_around(around)
    chosen = load_space(space, model)
    if around is not None:
        split = split or around.split
        scale = around.scale if scale == "auto" else scale
    if folder is None:
        storage = InMemoryStorage() if storage is None else storage
    else:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
    with quiet_optuna(), _opened(storage, folder) as (place, url):
        search = Search(
            dataset,
            chosen,
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
        called = name or f"{dataset.name}-{model}"
        agreed, budget = search.agreement(), {"trials": trials, "seed": seed}
        ledger = Ledger(place, called, agreed, search.space, **budget, start=search.start)
        expected = None if on_estimate is None else search.estimate(ledger, finalists)
        if on_estimate is not None and expected is not None:
            on_estimate(expected)
        search.run(ledger)
        record = search.finish(ledger, finalists, url)
    if data_dir is not None and record.dataset.graph in known_names():
        named = dataclasses.replace(record.dataset, data_dir=str(Path(data_dir).absolute()))
        record = dataclasses.replace(record, dataset=named)
    result = TuningResult(search.config(record.best.params), record, folder)
    if folder is not None:
        write_record(folder, record)
        result.write_recipe(folder / RECIPE)
        write_page(folder, record)
    return result


@contextlib.contextmanager
def _opened(
    storage: str | BaseStorage | None, folder: Path | None
) -> Iterator[tuple[BaseStorage, str | None]]:
    """The storage and its URL without password; closed afterwards, unless the caller opened it."""
    if isinstance(storage, BaseStorage):
        yield storage, None
        return
    url = storage or default_url(folder or Path())
    place = open_storage(url)
    try:
        yield place, shown_url(url)
    finally:
        close_storage(place)


def _check_integer(key: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"Expected `{key}` to be an integer >= {least} (got {value!r})")
