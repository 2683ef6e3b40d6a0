"""The runtime's requirements, and the model that it simulates."""

import json
import re
from pathlib import Path

import pytest

from devcluster.kubelet import model, runtime
from devcluster.progress import SILENT


def test_each_requirement_has_a_version_and_hashes() -> None:
    text = runtime.REQUIREMENTS.read_text(encoding="utf-8")
    requirements = [line for line in text.replace("\\\n", " ").splitlines() if not line.startswith("#")]
    assert len(requirements) > 5
    for requirement in requirements:
        assert re.match(r"[a-z-]+==[0-9.]+ .*--hash=sha256:[0-9a-f]{64}", requirement), requirement


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(runtime.SWITCH, "off")
    assert runtime.installed(tmp_path) is None
    with pytest.raises(runtime.InstallationError, match=f"{runtime.SWITCH}=off"):
        runtime.install(SILENT)


def test_a_failed_installation_names_the_cause_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requirements = tmp_path / "runtime.txt"
    requirements.write_text("ai-dynamo==1.6.1 --hash=sha256:" + "0" * 64)
    monkeypatch.setattr(runtime, "REQUIREMENTS", requirements)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(runtime.InstallationError, match="ai-dynamo"):
        runtime.install(SILENT)
    assert runtime.installed(tmp_path) is None
    assert [path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".lock"]


def test_every_token_of_the_model_is_different_and_answers_are_words(tmp_path: Path) -> None:
    model.write(tmp_path)
    vocabulary = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    assert sorted(vocabulary.values()) == [*range(len(vocabulary))]
    words = model.answer_words()
    assert vocabulary[words[0].replace(" ", "\u0120")] == 1000
    assert len(set(words)) == 1024
    assert all(re.fullmatch(r" [a-z]+ [a-z]+", word) for word in words)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["vocab_size"] == len(vocabulary)
    assert len(config["eos_token_id"]) == 1 + 1024 // 64
