import pytest
import yaml

from devcluster.certificates import Pair
from devcluster.components import kubeconfig

SERVER = "https://127.0.0.1:6443"


@pytest.mark.parametrize(
    ("credential", "user"),
    [
        (Pair(b"CERT", b"KEY"), {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"}),
        ("TOKEN", {"token": "TOKEN"}),
    ],
)
def test_the_only_context_has_its_credential_embedded(credential: Pair | str, user: dict[str, str]) -> None:
    content = yaml.safe_load(kubeconfig(name="here", server=SERVER, authority=b"CA", credential=credential))
    assert "here" == content["current-context"]
    assert {"cluster": "here", "user": "here"} == content["contexts"][0]["context"]
    assert user == content["users"][0]["user"]
    assert {"server": SERVER, "certificate-authority-data": "Q0E="} == content["clusters"][0]["cluster"]
