"""Being asked to end: SIGTERM, as kubelets and launchers send it, becomes a question that a long
job asks itself."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class Stopping:
    """While it is entered, SIGTERM does not end the process; `told` says that it came."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._before: Any = None

    def __enter__(self) -> Self:
        # Only a main thread hears signals; elsewhere nobody sends any.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._event.set()

    def told(self) -> bool:
        """Whether the process is to end."""
        return self._event.is_set()

    def tell(self) -> None:
        """End, as a signal would."""
        self._event.set()

    def wait(self, seconds: float) -> None:
        """So long, or until somebody asks to stop."""
        self._event.wait(seconds)
