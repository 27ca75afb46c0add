"""A picture that cannot be written is refused before anything is played or drawn."""

import pytest

from steadyrl.evaluation.histogram import check_picture
from steadyrl.evaluation.risk_report import RiskReport


def test_the_suffix_is_one_that_matplotlib_writes(tmp_path):
    assert check_picture(tmp_path / "returns") == tmp_path / "returns.png"
    assert check_picture(tmp_path / "new" / "returns.PDF") == tmp_path / "new" / "returns.PDF"
    with pytest.raises(ValueError, match=r"x.foo: pictures cannot be written as .foo. Use one of: .*pdf.*png.*svg"):
        check_picture(tmp_path / "x.foo")
    with pytest.raises(ValueError, match=r"cannot be written as .foo"):
        RiskReport.from_returns([1.0, 2.0], [1.0, 2.0], 1.0, {}, 0).histogram(tmp_path / "new" / "x.foo")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(NotADirectoryError, match="file is not a folder"):
        check_picture(tmp_path / "file" / "new" / "x.png")
    with pytest.raises(IsADirectoryError, match="is a folder: name a file"):
        check_picture(tmp_path / "folder.png")
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)  # Permissions do not bind root.
    with pytest.raises(PermissionError, match=r"x\.png cannot be written"):
        check_picture(tmp_path / "x.png")
