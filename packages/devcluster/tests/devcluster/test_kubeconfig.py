import base64

import yaml

from devcluster.certificates import Pair
from devcluster.components import kubeconfig

SERVER = "https://127.0.0.1:6443"


def decoded(text: str) -> bytes:
    return base64.b64decode(text)


def test_a_certificate_is_embedded() -> None:
    content = yaml.safe_load(
        kubeconfig(name="here", server=SERVER, authority=b"CA", credential=Pair(b"CERTIFICATE", b"KEY"))
    )
    user = content["users"][0]["user"]
    assert b"CERTIFICATE" == decoded(user["client-certificate-data"])
    assert b"KEY" == decoded(user["client-key-data"])


def test_a_token_is_embedded_and_the_only_context_is_current() -> None:
    content = yaml.safe_load(kubeconfig(name="here", server=SERVER, authority=b"CA", credential="TOKEN"))
    cluster = content["clusters"][0]["cluster"]
    assert "here" == content["current-context"]
    assert {"cluster": "here", "user": "here"} == content["contexts"][0]["context"]
    assert {"token": "TOKEN"} == content["users"][0]["user"]
    assert SERVER == cluster["server"]
    assert b"CA" == decoded(cluster["certificate-authority-data"])
