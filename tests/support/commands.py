"""Commands, run in this process."""

import pytest

from steadyrl.cli.main import main


def refusal(capsys, *command):
    """The one line with which a command is refused, with status 2."""
    with pytest.raises(SystemExit) as stop:
        main(list(map(str, command)))
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line
