"""Measuring with a program: started anew for each design."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from dse.study.metrics import Failed, last_object
from dse.study.processes import end, ending, exchange, kill, last_line, start

__all__ = ["PLACE", "CommandRunner"]

PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
"""A place in an argument that is replaced, or a doubled brace."""


class CommandRunner:
    """Runs a program for each design, in a process group of its own that ends with it, with the timeout, and with us."""

    def __init__(self, command: Sequence[str], folder: str = "", timeout: float | None = None) -> None:
        self.command = tuple(command)
        self.folder = folder
        self.timeout = timeout
        self.remark = ""
        self._running: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def arguments(self, design: Mapping[str, Any]) -> list[str]:
        """The command with every ``{dimension}`` replaced; ``{{`` and ``}}`` are braces. No shell sees them."""
        return [PLACE.sub(lambda place: _fill(place, design), argument) for argument in self.command]

    def run(self, design: Mapping[str, Any]) -> object:
        """The JSON object that the program prints for a design."""
        arguments = self.arguments(design)
        program = arguments[0]
        self.remark = ""
        try:
            with self._lock:
                if self._closed:
                    raise Failed("the measurement was stopped")
                process = self._running = start(arguments, folder=self.folder)
        except (OSError, ValueError) as error:
            raise Failed(f"cannot run {program}: {error}") from None
        try:
            answer = exchange(process, json.dumps(design).encode(), self.timeout)
        finally:
            with self._lock:
                self._running = None
            end(process)
        if answer.stopped:
            raise Failed(f"{program} {answer.stopped}")
        said = last_line(answer.err)
        if process.returncode:
            raise Failed(f"{program} {ending(process.returncode)}{said}")
        if said:
            self.remark = f"; on standard error it said{said}"
        return last_object(program, answer.out)

    def close(self) -> None:
        """Kill the program that is running."""
        with self._lock:
            self._closed = True
            if self._running is not None:
                kill(self._running)


def _fill(place: re.Match[str], design: Mapping[str, Any]) -> str:
    if place[1] is None:
        return place[0][0]
    value = design[place[1]]
    return json.dumps(value) if isinstance(value, bool) else str(value)
