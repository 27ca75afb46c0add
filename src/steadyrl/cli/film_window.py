"""A window that plays a film again and again, until it is closed."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image


def show_film(frames: Callable[[], Iterator[tuple[Image.Image, float]]], title: str) -> None:
    """Play the film in real time; a RuntimeError or ImportError if windows cannot be opened here."""
    try:
        import tkinter
    except ImportError:
        raise ImportError("Python was built without tkinter (Debian and Ubuntu: apt install python3-tk).") from None
    try:
        window = tkinter.Tk()
    except tkinter.TclError as error:
        raise RuntimeError(f"the display cannot be used: {error}") from None
    window.title(f"{title} (Escape closes)")
    window.bind("<Escape>", lambda _: window.destroy())
    window.resizable(False, False)
    label = tkinter.Label(window, borderwidth=0)
    label.pack()
    playing = frames()

    def show_next() -> None:
        nonlocal playing
        picture, seconds = next(playing, (None, 0.0))
        if picture is None:
            playing = frames()
            picture, seconds = next(playing)
        image = tkinter.PhotoImage(data=_ppm(picture))
        label.configure(image=image)
        label.image = image  # type: ignore[attr-defined]  # Tk itself keeps no reference.
        window.after(max(1, round(1000 * seconds)), show_next)

    show_next()
    window.mainloop()


def _ppm(picture: Any) -> bytes:
    content = io.BytesIO()
    picture.save(content, "PPM")
    return content.getvalue()
