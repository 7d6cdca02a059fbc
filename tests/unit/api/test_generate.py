"""The generated files are up to date, the same on every run, and small enough."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scalable_topics_operator.api.generate import crd_files
from scalable_topics_operator.generate import CHART_VALUES_PAGE, CLI_PAGE, main, reference_files
from scalable_topics_operator.generated_files import outdated

_ROOT = Path(__file__).parents[3]
_ANNOTATION_LIMIT_BYTES = 262144


def test_crds_are_what_the_models_say() -> None:
    for folder in (_ROOT / "crds", _ROOT / "charts" / "scalable-topics" / "files" / "crds"):
        assert outdated(folder, crd_files()) == []


def test_reference_is_what_the_models_and_the_flags_say() -> None:
    assert outdated(_ROOT / "docs" / "reference", reference_files(), others={CHART_VALUES_PAGE, CLI_PAGE}) == []


def test_second_run_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--reference", str(tmp_path / "reference"), str(tmp_path / "crds")]
    assert main(arguments) == 0
    assert capsys.readouterr().out.count("written") == len(crd_files()) + len(reference_files())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    assert main(arguments) == 0
    assert capsys.readouterr().out == ""
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_output_does_not_depend_on_the_process(hash_seed: str) -> None:
    command = [sys.executable, "-m", "scalable_topics_operator.generate", "--check", str(_ROOT / "crds")]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_check_names_what_is_not_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    capsys.readouterr()
    changed = tmp_path / "scalabletopics.scalabletopics.io.yaml"
    changed.write_text(changed.read_text().replace("maxLength: 512", "maxLength: 513"))
    missing = tmp_path / "segmentoperations.scalabletopics.io.yaml"
    missing.unlink()
    unknown = tmp_path / "oldkinds.scalabletopics.io.yaml"
    unknown.write_text("{}")
    (tmp_path / "README.md").write_text("not ours")

    assert main(["--check", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: is not up to date" for path in sorted((changed, missing, unknown))
    ]
    assert not missing.exists()

    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    assert not unknown.exists()
    assert (tmp_path / "README.md").read_text() == "not ours"


@pytest.mark.parametrize("name", sorted(crd_files()))
def test_crd_fits_into_the_annotation_of_client_side_apply(name: str) -> None:
    """Hazard C69: `kubectl apply` keeps the whole object in an annotation of at most 262144 bytes."""
    text = crd_files()[name]
    assert len(text.encode()) < _ANNOTATION_LIMIT_BYTES
    assert len(json.dumps(yaml.safe_load(text))) < _ANNOTATION_LIMIT_BYTES


def test_one_file_holds_one_crd_of_that_name() -> None:
    for name, text in crd_files().items():
        documents = list(yaml.safe_load_all(text))
        assert [f"{document['metadata']['name']}.yaml" for document in documents] == [name]
