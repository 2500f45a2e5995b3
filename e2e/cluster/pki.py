"""Keys, certificates and kubeconfigs of the cluster, made once."""

from __future__ import annotations

import base64
import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from e2e.cluster.places import API_SERVICE, API_URL, DATA, DOMAIN, NAME, NODE_ADDRESS

KEYS = DATA / "keys"
AUTHORITY, SERVER, SERVER_KEY = KEYS / "authority.crt", KEYS / "server.crt", KEYS / "server.key"
ACCOUNTS = KEYS / "service-accounts.key"
USERS = {
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kube-proxy": ("system:kube-proxy", ""),
    "kubelet": (f"system:node:{NAME}", "system:nodes"),
    "kubelet-client": ("kube-apiserver-kubelet-client", "system:masters"),
    "coredns": ("coredns", "system:masters"),
}
"""Who talks to the API server: user and group."""
LIFETIME = timedelta(days=365)


def make() -> None:
    """All of it, unless it is there."""
    if (KEYS / "done").exists():
        return
    KEYS.mkdir(parents=True, exist_ok=True)
    KEYS.chmod(0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("authority", "", key, None, key)
    AUTHORITY.write_bytes(_pem(authority))
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{DOMAIN}"]
    server_key = ec.generate_private_key(ec.SECP256R1())
    server = _certificate(NODE_ADDRESS, "", server_key, authority, key, names)
    SERVER.write_bytes(_pem(server))
    SERVER_KEY.write_bytes(_private(server_key))
    ACCOUNTS.write_bytes(_private(rsa.generate_private_key(public_exponent=65537, key_size=2048)))
    for name, (user, group) in USERS.items():
        own = ec.generate_private_key(ec.SECP256R1())
        (KEYS / f"{name}.key").write_bytes(_private(own))
        (KEYS / f"{name}.crt").write_bytes(_pem(_certificate(user, group, own, authority, key)))
        _write_kubeconfig(name)
    (KEYS / "done").touch()


def kubeconfig(name: str) -> Path:
    """The kubeconfig of a user."""
    return KEYS / f"{name}.kubeconfig"


def _write_kubeconfig(name: str) -> None:
    def data(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    user = {
        "client-certificate-data": data(KEYS / f"{name}.crt"),
        "client-key-data": data(KEYS / f"{name}.key"),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": API_URL, "certificate-authority-data": data(AUTHORITY)}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": name}}],
        "current-context": NAME,
    }
    kubeconfig(name).write_text(yaml.safe_dump(document))
    kubeconfig(name).chmod(0o600)


def _certificate(
    user: str,
    group: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    names: list[str] | None = None,
) -> x509.Certificate:
    """Of the authority itself without an issuer, of a server with names, else of a client."""
    group_part = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    subject = x509.Name([*group_part, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        usage = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if names:
        addresses = [x509.IPAddress(ipaddress.ip_address(a)) for a in (NODE_ADDRESS, API_SERVICE, "127.0.0.1")]
        alternatives = x509.SubjectAlternativeName([*(x509.DNSName(name) for name in names), *addresses])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
