"""`dynamoctl profile` and `dynamoctl new`, from their flags to what they print."""

import csv
import json
import re
from io import StringIO
from pathlib import Path

import pytest
import yaml

from dynamo_profiler.shape import models
from dynamoctl.main import app
from kube_runtime.commandline import execute

LLAMA = ["--model", "meta-llama/Llama-3.3-70B-Instruct", "--gpu", "h200_sxm", "--engine", "formulas"]


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    execute(app(), [*args])
    return capsys.readouterr().out


def test_profile_prints_the_front_and_the_choice_with_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "profile", *LLAMA)
    (head,) = (line for line in text.splitlines() if line.startswith("CHOICE"))
    (chosen,) = (line for line in text.splitlines() if line.startswith("safer "))
    cells = dict(zip(re.split(" {2,}", head), re.split(" {2,}", chosen), strict=True))
    assert float(cells["REQ/S"]) >= 1
    *_, first, second = text.splitlines()
    assert first.startswith(f"Safer: {cells['GPUS']} x h200_sxm, ")
    assert "by formulas: ttft" in first
    assert "± 40%" in first
    assert second.startswith("If predictions are exact: ")


def test_new_prints_the_manifest_and_its_reasons_and_no_steps(capsys: pytest.CaptureFixture[str]) -> None:
    execute(app(), ["new", "chat", *LLAMA])
    out, err = capsys.readouterr()
    assert "" == err
    note, safer, exact = (line for line in out.splitlines() if line.startswith("# "))
    assert "predicted by formulas" in note
    assert safer.startswith("# safer: 6 x h200_sxm")
    assert exact.startswith("# if predictions are exact: ")


def test_profile_writes_every_format_and_both_pictures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [tmp_path / "plot.svg", tmp_path / "report.html"]
    flags = ["--plot", str(files[0]), "--report", str(files[1])]
    rows = list(csv.DictReader(StringIO(printed(capsys, "profile", *LLAMA, "-o", "csv", *flags))))
    found = json.loads(printed(capsys, "profile", *LLAMA, "-o", "json"))
    assert len(rows) == len(found["candidates"])
    assert rows[0]["workers"] == found["candidates"][0]["workers"]
    (graph,) = yaml.safe_load_all(printed(capsys, "profile", *LLAMA, "-o", "yaml"))
    assert "DynamoGraphDeployment" == graph["kind"]
    assert all(each.stat().st_size > 1000 for each in files)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--ttft", "1"], "--ttft of 1 ms cannot be met: the fastest engine, 8 x h200_sxm"),
        (["--gpu", "voodoo"], '--gpu: unknown GPU "voodoo" (expected one of'),
        (["--precision", "fp4", "--model", "Qwen/Qwen3-8B"], "Qwen/Qwen3-8B is not published in fp4"),
        (["--model", "acme/secret"], "such as 7B; provide its config.json with --model-config\n"),
        (["--max-gpus", "1"], "--max-gpus of 1 is too low"),
    ],
)
def test_what_cannot_be_found_has_a_message_of_its_own(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = dict(zip(LLAMA[::2], LLAMA[1::2], strict=True))
    given |= dict(zip(flags[::2], flags[1::2], strict=True))
    with pytest.raises(SystemExit) as ended:
        execute(app(), ["profile", *(word for pair in given.items() for word in pair)])
    assert 1 == ended.value.code
    assert message in capsys.readouterr().err


def test_a_model_that_is_not_built_in_has_its_own_config(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(dict(models()["Qwen/Qwen3-8B"].config)), encoding="utf-8")
    text = printed(capsys, "profile", "--model", "acme/secret", "--model-config", str(file))
    assert "acme/secret, 8.19 billion parameters of 16 bits, on h100_sxm; " in text


@pytest.mark.parametrize("backend", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("mode", ["aggregated", "disaggregated"])
def test_the_manifest_of_new_passes_lint(
    backend: str, mode: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    flags = ["--backend", backend, "--mode", mode, "--replicas", "2", "--precision", "fp8"]
    text = printed(capsys, "new", "chat", *LLAMA, *flags)
    graph = yaml.safe_load(text)
    assert "nvidia.com/v1beta1" == graph["apiVersion"]
    workers = [each for each in graph["spec"]["components"] if "frontend" != each["type"]]
    assert ("chat", {2}) == (graph["metadata"]["name"], {each["replicas"] for each in workers})
    assert (2 if "disaggregated" == mode else 1) == len(workers)
    file = tmp_path / "chat.yaml"
    file.write_text(text, encoding="utf-8")
    assert 0 == execute(app(), ["lint", str(file)])
    assert "0 warnings" in capsys.readouterr().err
