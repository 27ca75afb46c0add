"""`steadyrl watch`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from steadyrl.cli.arguments import Count, Flag, Pairs, PerhapsCount, named, options_of
from steadyrl.cli.stored_agent import StoredAgent

if TYPE_CHECKING:
    from steadyrl.evaluation.film.scenes import Film

MP4_FPS, FPS = 30.0, 15.0
REAL_TIME, SECONDS = 3600.0, 12.0
"""How long an episode may take before it is shown faster: in windows it is not, except if it is that long."""


@dataclass(frozen=True)
class Watch:
    """Film the worst, median and best of many episodes of a trained agent, as a file or in a window."""

    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run folder, or a file written by agent.save."""
    other: Annotated[Path | None, tyro.conf.Positional, named("[RUN]")] = None
    """A second one, to be shown beside the first."""
    worst: PerhapsCount = None
    """Film so many of the worst episodes; by default the worst, the median and the best one, side by side."""
    best: PerhapsCount = None
    """Film so many of the best episodes."""
    seed: PerhapsCount = None
    """Seed of the episodes, 0 by default, as in evaluate; without --worst and --best, its first episode is filmed."""
    out: Annotated[Path | None, named("FILE")] = None
    """The film to write: .gif, .webp or .mp4. By default a window; without a display, film.gif in the run folder."""
    episodes: Count = 200
    """How many episodes to play and rank."""
    env: Annotated[str | None, named("ENV")] = None
    """The environment to play in, as an id or module:factory; by default the one that the agent was trained in."""
    env_set: Pairs = ()
    """An option of that environment; may be given many times."""
    deterministic: Flag = False
    """Take the agent's most likely action instead of drawing one."""
    risk_aversion: Annotated[float | None, named("LAMBDA", "--at")] = None
    """The lambda to act for, of an agent that was trained for a range of them; --at is the same."""
    width: PerhapsCount = None
    """Width of the picture of an episode in pixels; 400 if there is one, else 240."""
    max_kb: Count = 1000
    """The largest .gif or .webp to write, in kB; pictures and colours are left out to stay below it."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.evaluation.film.files import check_film_file
        from steadyrl.evaluation.film.film import film
        from steadyrl.evaluation.film.selection import parse_which

        which = self._which()
        parse_which(which, self.episodes)
        out = self._file()
        if out is not None:
            out = check_film_file(out).absolute()  # Environments may change the folder.
        stored = [StoredAgent.read(path).at(self.risk_aversion) for path in self._paths]
        for one in stored:
            one.warn_if_unfinished()
        if self.env is None and any(one.recorded != stored[0].recorded for one in stored):
            paths = " and ".join(map(str, self._paths))
            raise ValueError(f"{paths} were not trained in the same environment: name the one to film with --env.")
        made = film(
            _labelled(stored),
            stored[0].environment(self.env, options_of(self.env_set)),
            episodes=self.episodes,
            which=which,
            deterministic=self.deterministic,
            seed=self.seed or 0,
            width=self.width,
            fps=MP4_FPS if out is None or out.suffix.lower() == ".mp4" else FPS,
            seconds=REAL_TIME if out is None else SECONDS,
        )
        print(made)
        if out is None:
            out = self._in_window(made)
        if out is not None:
            made.save(out, 1000 * self.max_kb)
            print(f"Film: {out} ({out.stat().st_size / 1000:,.0f} kB)")

    @property
    def _paths(self) -> list[Path]:
        return [self.path] if self.other is None else [self.path, self.other]

    def _which(self) -> Any:
        if self.worst is not None and self.best is not None:
            raise ValueError("--worst and --best: give one of them.")
        for kind, number in (("worst", self.worst), ("best", self.best)):
            if number is not None:
                return f"{kind}:{number}"
        return ("worst", "median", "best") if self.seed is None else 0

    def _file(self) -> Path | None:
        """The file to write; None to open a window."""
        from steadyrl.evaluation.film.rendering_env import has_display

        if self.out is not None:
            return self.out
        return None if has_display() and sys.stdout.isatty() else self._default_file

    @property
    def _default_file(self) -> Path:
        return self.path / "film.gif" if self.path.is_dir() else self.path.with_suffix(".gif")

    def _in_window(self, made: Film) -> Path | None:
        """Show the film until the window is closed; the file to write instead if that is not possible."""
        from steadyrl.cli.film_window import show_film

        try:
            show_film(made.frames, f"steadyrl watch {self.path}")
        except (ImportError, RuntimeError) as error:
            print(f"No window: {error}", file=sys.stderr)
            return self._default_file.absolute()
        return None


def _labelled(stored: list[StoredAgent]) -> dict[str, Any]:
    """The agents by name; by path where names are the same."""
    from steadyrl.evaluation.agent_looks import agent_title

    names = [agent_title(one.agent.name) for one in stored]
    if len(set(names)) < len(names):
        names = [str(one.path) for one in stored]
    return {
        name if one.at_lambda is None else f"{name}, \N{GREEK SMALL LETTER LAMDA} = {one.at_lambda:g}": one.agent
        for name, one in zip(names, stored, strict=True)
    }
