"""How much of a machine this process may use: CPUs, memory, and the caches that data must not fit in."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

__all__ = ["available_memory", "caches", "cpus", "title", "total_memory"]

ROOT = Path("/")

_SMALL = 2**30
"""Bytes of memory where the system does not say."""

_CACHES = 32 * 2**20
"""Bytes of last-level caches where the system does not say."""

_FACTORS = {"K": 2**10, "M": 2**20, "G": 2**30}


def cpus(root: Path = ROOT) -> int:
    """CPUs that this process may use: its affinity, and the quota of its control groups, rounded up."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    for folder in _groups(root, "cpu"):
        words = _read(folder / "cpu.max").split()
        if len(words) != 2:
            words = [_read(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        if all(word.isdigit() and int(word) for word in words):
            count = min(count, -(-int(words[0]) // int(words[1])))
    return max(count, 1)


def total_memory(root: Path = ROOT) -> int:
    """Bytes of memory of the machine, or of the control group where that may have less."""
    limits = [limit for limit, _ in _memory_groups(root)]
    return min([_meminfo(root, "MemTotal") or _SMALL, *limits])


def available_memory(root: Path = ROOT) -> int:
    """Bytes that can be had without others being pushed out, within the limits of the control groups and of a process."""
    left = [limit - used for limit, used in _memory_groups(root)]
    return max(min([_meminfo(root, "MemAvailable") or _SMALL, *left, *_process_limits()]), 0)


def _process_limits() -> Iterator[int]:
    """Bytes of address space and of data that a process may have (``ulimit -v``, ``ulimit -d``), where limited."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows
        return
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield soft


def caches(root: Path = ROOT) -> int:
    """Bytes of all last-level caches of the machine."""
    found: dict[tuple[int, str], int] = {}
    for index in sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*/cache/index*")):
        level, size = _read(index / "level"), _read(index / "size")
        if level.isdigit() and size[:-1].isdigit() and size[-1:] in _FACTORS:
            found[int(level), _read(index / "shared_cpu_list")] = int(size[:-1]) * _FACTORS[size[-1]]
    last = max((level for level, _ in found), default=0)
    return sum(size for (level, _), size in found.items() if level == last) or _CACHES


def title(root: Path = ROOT) -> str:
    """The name of the processor."""
    for line in _read(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine() or "unknown processor"


def _meminfo(root: Path, name: str) -> int:
    """A line of ``/proc/meminfo`` in bytes; 0 where there is none."""
    for line in _read(root / "proc/meminfo").splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == f"{name}:" and words[1].isdigit():
            return int(words[1]) * 1024
    return 0


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Folders of the control groups that the process is in, from its own up; version 2, then version 1."""
    for line in _read(root / "proc/self/cgroup").splitlines() or ["0::/"]:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controller if controllers else "")
        folder = top / path.strip("/")
        while folder != top:
            yield folder
            folder = folder.parent
        yield top


def _memory_groups(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and use of every control group that has a limit."""
    for folder in _groups(root, "memory"):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            most, now = _read(folder / limit), _read(folder / used)
            if most.isdigit():
                yield int(most), int(now) if now.isdigit() else 0


def _read(path: Path) -> str:
    """The text of a small file of the system; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
