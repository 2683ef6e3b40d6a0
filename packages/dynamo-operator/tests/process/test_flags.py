"""The reference operator's command lines mean the same here."""

import pytest

from dynamo_operator.process.flags import canonical, flags, given

# Every flag of the reference operator, by whether it is a boolean.
REFERENCE = {
    "metrics-bind-address": False,
    "health-probe-bind-address": False,
    "leader-elect": True,
    "leader-election-id": False,
    "leader-election-namespace": False,
    "metrics-secure": True,
    "enable-http2": True,
    "enable-webhooks": True,
    "restrictedNamespace": False,
    "natsAddr": False,
    "etcdAddr": False,
    "istio-virtual-service-gateway": False,
    "virtual-service-supports-https": True,
    "ingress-controller-class-name": False,
    "ingress-controller-tls-secret-name": False,
    "ingress-host-suffix": False,
    "grove-termination-delay": False,
    "model-express-url": False,
    "prometheus-endpoint": False,
    "mpi-run-ssh-secret-name": False,
    "mpi-run-ssh-secret-namespace": False,
    "planner-cluster-role-name": False,
    "dgdr-profiling-cluster-role-name": False,
    "epp-cluster-role-name": False,
    "namespace-scope-lease-duration": False,
    "namespace-scope-lease-renew-interval": False,
    "operator-version": False,
    "discovery-backend": False,
    "zap-devel": True,
    "zap-encoder": False,
    "zap-log-level": False,
    "zap-stacktrace-level": False,
    "zap-time-encoding": False,
    "kubeconfig": False,
}


def test_every_flag_of_the_reference_is_known() -> None:
    known = {name: flag.is_boolean for flag in flags() for name in flag.names}
    assert REFERENCE == {name: known.get(name) for name in REFERENCE}


@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize("name", sorted(name for name in REFERENCE if not REFERENCE[name]))
def test_a_value_may_follow_the_flag_or_an_equals_sign(name: str, dashes: str) -> None:
    assert canonical([f"{dashes}{name}=x"]) == canonical([f"{dashes}{name}", "x"])


@pytest.mark.parametrize("name", sorted(name for name in REFERENCE if REFERENCE[name]))
def test_a_boolean_needs_no_value_and_takes_none_from_the_next_word(name: str) -> None:
    assert [f"--{name}=true", "run"] == canonical([f"-{name}", "run"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("--natsAddr --leader-elect", "--natsAddr=--leader-elect", id="a value like a flag"),
        pytest.param("--natsAddr a=b --etcdAddr=", "--natsAddr=a=b --etcdAddr=", id="equals sign, nothing"),
        pytest.param("--natsAddr=a -natsAddr b", "--natsAddr=b", id="the last of several"),
        pytest.param("--log-level=info --zap-log-level=2", "--zap-log-level=2", id="two spellings"),
        pytest.param("-leader-elect -- -natsAddr", "--leader-elect=true -- -natsAddr", id="after two dashes"),
        pytest.param(
            "run -leader-elect -h -nats=x",
            "run --leader-elect=true -h --nats=x",
            id="commands and unknown flags",
        ),
        pytest.param("-natsAddr", "--natsAddr", id="a flag without its value"),
    ],
)
def test_a_command_line_is_rewritten_as_go_reads_it(line: str, expected: str) -> None:
    assert expected.split() == canonical(line.split())


def test_rewriting_twice_changes_nothing() -> None:
    once = canonical(["-leader-elect", "run", "-natsAddr", "x", "-zap-devel=false"])
    assert once == canonical(once)


def test_what_is_given_has_the_preferred_name() -> None:
    assert {"log-level": "debug"} == given({"log_level": "debug", "natsAddr": None})
