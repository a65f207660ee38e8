"""Columns of words: categories, one feature each, and text by TF-IDF.

As in :mod:`longnn.data._columns`, what scikit-learn's transformers learn is kept as plain data. The
features are sparse.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, normalize

from longnn.data._columns import flag_name
from longnn.data._tables import Table

MAX_CATEGORIES = 50  # features of one column
RARE = (0.01, 2, 10)  # a category is rare below this share of the nodes, kept within these counts
MAX_WORDS = 2_000
MIN_NODES = 2  # nodes that a word must occur in


@dataclass(frozen=True)
class Category:
    """One feature for each frequent value, one for all rare ones, one for gaps.

    Args:
        column: its name.
        values: the frequent values.
        rare: how many other values there were; if any, new values count as such.
        gaps: how many cells were missing.

    >>> cells = pa.array(["Paris", "Rome", "Paris", None, "Oslo", "Rome"])
    >>> city = Category.fit("city", cells)
    >>> city.names
    ('city=Paris', 'city=Rome', 'city=(other)', 'city missing')
    >>> city.encode(pa.array(["Lima", None])).toarray().tolist()
    [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """

    kind: ClassVar[str] = "category"
    column: str
    values: tuple[str, ...]
    rare: int = 0
    gaps: int = 0

    @staticmethod
    def parse(table: Table, column: str) -> Any:
        """Trimmed strings, null for a gap."""
        return table.cells(column)

    @classmethod
    def fit(cls, column: str, cells: Any) -> "Category":
        found = cells.drop_null().dictionary_encode()
        order = pc.array_sort_indices(found.dictionary)
        words = found.dictionary.take(order).to_pylist()
        place = np.empty(len(words), dtype=np.int64)
        place[order.to_numpy()] = np.arange(len(words))  # the rank of each word
        share, least, most = RARE
        encoder = OneHotEncoder(
            min_frequency=int(np.clip(np.ceil(share * len(cells)), least, most)),
            max_categories=MAX_CATEGORIES,
            handle_unknown="infrequent_if_exist",
        ).fit(place[found.indices.to_numpy()][:, None])
        rare = encoder.infrequent_categories_[0]
        lost = set() if rare is None else set(rare.tolist())
        values = tuple(words[k] for k in encoder.categories_[0].tolist() if k not in lost)
        return cls(column, values, len(lost), cells.null_count)

    def encode(self, cells: Any) -> sp.csr_array:
        place = pc.index_in(cells, value_set=pa.array(self.values, pa.string()))
        codes = place.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        missing = pc.is_null(cells).to_numpy(zero_copy_only=False)
        width = len(self.values)
        codes[(codes < 0) & ~missing] = width if self.rare else -1
        codes[missing] = width + (self.rare > 0) if self.gaps else -1
        rows = np.flatnonzero(codes >= 0)
        start = np.concatenate([[0], np.cumsum(codes >= 0)])
        ones = np.ones(len(rows), dtype=np.float32)
        return sp.csr_array((ones, codes[rows], start), shape=(len(codes), len(self.names)))

    @property
    def names(self) -> tuple[str, ...]:
        named = [f"{self.column}={value}" for value in self.values]
        other = [f"{self.column}=(other)"] if self.rare else []
        return (*named, *other, *flag_name(self.column, self.gaps))

    @property
    def done(self) -> str:
        what = f"one feature for each of {len(self.values)} values"
        what += f", one for {self.rare} rare ones" if self.rare else ""
        return what + (f", one for {self.gaps} gaps" if self.gaps else "")


@dataclass(frozen=True)
class Text:
    """Words by TF-IDF: count times ``idf``, each node's row brought to length 1.

    Args:
        column: its name.
        words: the vocabulary.
        idf: one weight per word, :math:`1 + ln((1 + nodes) / (1 + nodes with the word))`.
    """

    kind: ClassVar[str] = "text"
    column: str
    words: tuple[str, ...]
    idf: tuple[float, ...]

    @staticmethod
    def parse(table: Table, column: str) -> list[str]:
        """The text of each node, empty for a gap."""
        return table.cells(column).fill_null("").to_pylist()

    @classmethod
    def fit(cls, column: str, texts: list[str]) -> "Text":
        """Learn words and weights; none if no word occurs twice."""
        vectorizer = TfidfVectorizer(max_features=MAX_WORDS, min_df=MIN_NODES)
        try:
            vectorizer.fit(texts)
        except ValueError:  # no words, or none that two nodes share
            return cls(column, (), ())
        words = tuple(vectorizer.get_feature_names_out().tolist())
        return cls(column, words, tuple(vectorizer.idf_.tolist()))

    def encode(self, texts: list[str]) -> sp.csr_array:
        if not self.words:
            return sp.csr_array((len(texts), 0), dtype=np.float32)
        counts = CountVectorizer(vocabulary=self.words, dtype=np.float64).transform(texts)
        weighted = sp.csr_array(counts)
        weighted.data *= np.array(self.idf)[weighted.indices]
        return sp.csr_array(normalize(weighted, copy=False), dtype=np.float32)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column}: {word}" for word in self.words)

    @property
    def done(self) -> str:
        return f"TF-IDF of {len(self.words)} words"
