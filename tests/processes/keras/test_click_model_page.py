"""The programs and commands of the documentation page about click models, in an empty folder as on the page."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.pages import blocks, write_files
from tests.support.processes import processes

PAGE = "click-models.md"
HEADWATER, PYTHON = (sys.executable, "-m", "headwater"), (sys.executable, "-u")

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the programs of the page, and the records that `clicks.py` writes."""
    folder = tmp_path_factory.mktemp("page")
    write_files(PAGE, "python", folder)
    write_files(PAGE, "yaml", folder)
    clicks = folder / "clicks.py"
    (features,) = [block for block in blocks(PAGE, "python") if block.startswith("FEATURES")]
    lines = clicks.read_text().splitlines(keepends=True)
    clicks.write_text("".join([*lines[:-3], features, "\n\n", *lines[-3:]]))  # as the page says
    with pytest.MonkeyPatch.context() as patch, processes() as machine:
        patch.chdir(folder)
        machine.run(*PYTHON, "clicks.py").succeeds()
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the current folder, a copy of `written`."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def number(name: str, text: str) -> float:
    """Returns the number after a name in text."""
    found = re.search(rf"{name}\W+(\d\.\d+)", text)
    assert found, text
    return float(found[1])


def exports(folder: Path) -> list[str]:
    """Returns the paths of the exported models in a folder, in order."""
    return sorted(str(path) for path in folder.iterdir())


def test_an_estimator_leads_from_records_to_predictions(folder: Path) -> None:
    with processes() as machine:
        said = machine.run(*PYTHON, "by_estimator.py").succeeds()
        predicted = machine.run(*PYTHON, "predict.py", *exports(folder / "served")).succeeds()
    assert 0.67 < number("auc", said) < 0.73
    assert 0.6 < number("average_loss", said) < 0.68
    assert len(re.findall(r"0\.\d+", predicted)) == 5, predicted


def test_a_cluster_of_estimators_evaluates_and_exports(folder: Path) -> None:
    with processes() as machine:
        said = machine.run(*HEADWATER, "run", "--job", "clicks.yaml").succeeds()
        predicted = machine.run(*PYTHON, "predict.py", *exports(folder / "model" / "export" / "served")).succeeds()
    found = re.search(r"\[evaluator 0\] step (\d+): average loss (\d\.\d+), AUC (\d\.\d+)", said)
    assert found, said
    assert int(found[1]) >= 500
    assert 0.67 < float(found[3]) < 0.73
    assert len(re.findall(r"0\.\d+", predicted)) == 5, predicted


@pytest.mark.usefixtures("folder")
def test_keras_leads_from_records_to_predictions() -> None:
    with processes() as machine:
        said = machine.run(*PYTHON, "by_keras.py").succeeds()
        assert 0.67 < number("'auc'", said) < 0.73
        served = machine.run(*PYTHON, "serve_keras.py").succeeds()
        assert len(re.findall(r"0\.\d+", served)) == 5, served
        said = machine.run(*HEADWATER, "run", "--ps", "1", "--workers", "2", "by_keras.py").succeeds()
        assert 0.67 < number("'auc'", said) < 0.73


@pytest.mark.usefixtures("folder")
def test_lists_of_a_parquet_file_are_bags() -> None:
    with processes() as machine:
        said = machine.run(*PYTHON, "by_parquet.py").succeeds()
    assert len(re.findall(r"0\.[345]\d*", said.splitlines()[-1])) == 3, said
