"""Each known message has a cause of its own and commands that can be pasted."""

import shlex

import pytest

from dynamo_graphs.advice import Evidence, Row, causes, in_general, literals, rows
from dynamo_graphs.catalog import MEANINGS
from former_fields import former_fields_in

NAMES = {"graph": "chat", "namespace": "prod", "kind": "dgd", "name": "chat"}
POD = {
    "pod": "chat-decode-0",
    "container": "main",
    "image": "nvcr.io/nvidia/x:1",
    "node": "gpu-0",
    "pvc": "weights",
    "count": "2",
    "last": "the end",
}


def evidence(text: str, service: str = "Decode") -> Evidence:
    word, colon, message = text.partition(": ")
    is_word = colon and word.isalnum()
    return Evidence(word, message, service, POD) if is_word else Evidence("", text, service, POD)


def commands(text: str) -> list[str]:
    return text.split("`")[1::2]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.example[:60])
def test_a_true_message_has_the_cause_and_the_remedies_of_its_row(row: Row) -> None:
    (text,) = evidence(row.example).texts
    first = next(it for it in rows() if it.match.search(text))
    assert row.cause == first.cause
    (cause,) = causes([evidence(row.example)], NAMES)
    assert len(row.remedies) == len(cause.remedies)
    assert cause.text.endswith((".", "…", '"', "'", "!", "end")) or cause.text[-1].isprintable()
    for text in (cause.text, *cause.remedies):
        assert "{" not in text.replace("{{", "").split("`")[0]
        assert "  " not in text
        for command in commands(text):
            assert shlex.split(command)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.example[:60])
def test_a_page_has_each_row_without_an_object(row: Row) -> None:
    for text in (row.cause, *row.remedies):
        assert "{edit}" not in in_general(text)


def test_no_advice_names_a_field_that_v1beta1_does_not_have() -> None:
    texts = [text for row in rows() for text in (row.cause, *row.remedies)]
    texts += [text for meaning in MEANINGS for text in (meaning.text, meaning.advice)]
    assert not {text: fields for text in texts if (fields := former_fields_in(text))}


def test_a_command_has_the_real_names_quoted_for_a_shell() -> None:
    hostile = Evidence("FailedCreate", 'serviceaccount "$(reboot)" not found', "Decode")
    (cause,) = causes([hostile], NAMES)
    assert "`kubectl create serviceaccount '$(reboot)' -n prod`" in cause.remedies[0]


def test_a_remedy_whose_names_are_unknown_is_left_out() -> None:
    (cause,) = causes([Evidence("CrashLoopBackOff", "exit code 1", "Decode")], NAMES)
    assert "The container of the pod keeps exiting." == cause.text
    assert all("kubectl logs" not in remedy for remedy in cause.remedies)
    assert cause.remedies


def test_of_several_messages_about_a_service_the_most_specific_is_its_cause() -> None:
    general = evidence(
        "FailedScheduling: 0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    )
    specific = evidence('ProvisioningFailed: storageclass.storage.k8s.io "fast" not found')
    for order in ((general, specific), (specific, general)):
        (cause,) = causes(order, NAMES)
        assert "The PVC weights is Pending: the StorageClass fast does not exist." == cause.text


def test_services_with_the_same_cause_share_it_and_others_have_their_own() -> None:
    missing = 'CreateContainerConfigError: secret "keys" not found'
    both = causes(
        [
            evidence(missing, "Decode"),
            evidence(missing, "Prefill"),
            evidence("OOMKilled: exit code 137", "Frontend"),
        ],
        NAMES,
    )
    assert [("Decode", "Prefill"), ("Frontend",)] == [cause.services for cause in both]


def test_a_message_about_the_whole_graph_counts_only_alone() -> None:
    assert () == causes([Evidence("Failed", "pod x: exit code 1")], NAMES)  # it does not say which container
    whole = evidence("FailedScheduling: 4 Insufficient memory", "")
    assert 1 == len(causes([whole], NAMES))
    (cause,) = causes([whole, evidence("OOMKilled: exit code 137")], NAMES)
    assert "OOMKilled" in cause.text


def test_a_log_is_read_from_its_end() -> None:
    log = "\n".join(
        (
            "WARNING: No module named 'vllm._C'",
            *["INFO loading"] * 5,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "RuntimeError: Engine core initialization failed. See root cause above.",
        )
    )
    (cause,) = causes([Evidence("Log", log, "Decode", POD)], NAMES)
    assert "Decode ran out of GPU memory." == cause.text


def test_what_a_container_writes_is_not_taken_for_a_message_of_the_kubelet() -> None:
    log = "INFO image processor loaded\nWARNING: connection refused while fetching the image manifest"
    assert () == causes([Evidence("Log", log, "Decode", POD)], NAMES)


def test_an_unknown_message_has_no_cause() -> None:
    assert () == causes([evidence("SunSpots: too many")], NAMES)


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("Multi-Attach error", ("Multi-Attach error",)),
        ("exit code (?P<code>126|127)\\b", ("exit code ",)),
        ("Back-off|(?:a|b)c pulling? image", ("Back-off", " image")),
        ("'?x*[ab]{2,8}? on start", (" on start",)),
        ("(?:not \\(there|gone)?", ("",)),
    ],
)
def test_an_expression_matches_only_texts_with_one_of_its_literals(
    expression: str, texts: tuple[str, ...]
) -> None:
    assert texts == literals(expression)


def test_the_literals_of_a_row_are_in_the_text_that_it_matches() -> None:
    for row in rows():
        searched = row.match.search(" ".join(f"{row.shows[0]}: {row.example}".split()))
        assert searched is not None
        assert any(text in searched[0] for text in literals(row.expression)), row.expression
