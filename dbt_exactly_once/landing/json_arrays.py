"""The elements of a JSON array in a file, one by one: the array may be larger than memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import WHITESPACE
from typing import Any

# an array of rows, and not a line of JSON lines that happens to be an array
BEGINNING = re.compile(r"\s*\[\s*([{\]]|\Z)")
# a longer element is more likely a brace that is not closed
ELEMENT_LIMIT = 64 * 1024 * 1024


class BrokenArrayError(ValueError):
    """A file that begins as a JSON array, but is not one."""


def is_array(head: bytes) -> bool:
    """Whether a file with these first bytes is a JSON array of objects."""
    return BEGINNING.match(head.decode("utf-8-sig", "replace")) is not None


class ArrayReader:
    """Reads the elements of one array from the texts that make it up."""

    def __init__(self, texts: Iterator[str], decoder: json.JSONDecoder) -> None:
        self._texts = texts
        self._decoder = decoder
        # the text that is read and not consumed begins at `_at`, in line `_line` of the file
        self._text = ""
        self._at = 0
        self._line = 1

    def elements(self) -> Iterator[tuple[Any, str, int]]:
        """Each element: its value, its text and its line in the file."""
        self._take("[")
        if self._next() != "]":
            while True:
                self._next()
                line = self._line
                value, text = self._value()
                yield value, text, line
                if self._next() != ",":
                    break
                self._take(",")
        self._take("]")
        if self._next():
            raise BrokenArrayError(f"line {self._line}: there is more behind the array")

    def _value(self) -> tuple[Any, str]:
        """The value that begins here, and its text."""
        while True:
            size = len(self._text) - self._at
            problem = None
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                where = getattr(error, "pos", self._at)
                line = self._line + self._text.count("\n", self._at, where)
                problem = f"line {line}: not JSON: {getattr(error, 'msg', None) or error}"
            # a number that ends where the text read so far ends may have more digits
            is_whole = problem is None and end < len(self._text)
            # the text doubles each time, so that a long element is not parsed once per piece
            if not is_whole and size <= ELEMENT_LIMIT and self._read(size):
                continue
            if problem:
                raise BrokenArrayError(problem)
            text = self._text[self._at : end]
            self._move(end)
            return value, text

    def _take(self, wanted: str) -> None:
        found = self._next()
        if found != wanted:
            raise BrokenArrayError(
                f"line {self._line}: {wanted} is missing in the array, there is "
                f"{found or 'the end of the file'}"
            )
        self._move(self._at + 1)

    def _next(self) -> str:
        """The character after white space, blank at the end of the file."""
        while True:
            self._move(WHITESPACE.match(self._text, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read(1):
                return ""

    def _move(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _read(self, least: int) -> bool:
        """Read at least so many more characters; false if the file has ended."""
        pieces = [self._text[self._at :]]
        size = 0
        for text in self._texts:
            pieces.append(text)
            size += len(text)
            if size >= least:
                break
        if size:
            self._text, self._at = "".join(pieces), 0
        return size > 0
