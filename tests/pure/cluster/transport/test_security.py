"""The connections that a task accepts, and the messages for invalid settings."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.transport.call_proof import MAX_SKEW_S, ProofChecker, make_proof
from headwater.cluster.transport.certificates import make_certificates
from headwater.cluster.transport.security import Security, Tokens, is_loopback
from headwater.errors import AlreadyExistsError, InvalidArgumentError, PermissionDeniedError

METHOD = "/headwater.Task/GetStatus"
SECRET = Tokens(values=("secret",))


class TestSettings:
    def test_nothing_is_set(self) -> None:
        security = Security.from_environment({})
        assert security == Security(users_only=True)
        assert not security.tls

    def test_all_is_set(self, tmp_path: Path) -> None:
        files = make_certificates(tmp_path, ["ps0"])
        security = Security.from_environment(files.environment() | {"HEADWATER_TOKEN": "s3cret"})
        assert security.token == "s3cret"
        assert security.tls
        assert "s3cret" not in repr(security)

    @pytest.mark.parametrize(("value", "insecure"), [("1", True), ("true", True), ("0", False), ("", False)])
    def test_insecure(self, value: str, insecure: bool) -> None:
        assert Security.from_environment({"HEADWATER_INSECURE": value}).insecure is insecure
        assert Security.from_environment({"HEADWATER_INSECURE": value}, insecure=True).insecure

    def test_half_a_certificate(self, tmp_path: Path) -> None:
        files = make_certificates(tmp_path, [])
        for name in ("HEADWATER_TLS_CERT", "HEADWATER_TLS_KEY"):
            environ = files.environment()
            del environ[name]
            with pytest.raises(InvalidArgumentError, match=f"{name} is not"):
                Security.from_environment(environ)

    def test_a_file_that_is_not_there(self) -> None:
        with pytest.raises(InvalidArgumentError, match=r"HEADWATER_TLS_CA names /nowhere/ca\.pem"):
            Security.from_environment({"HEADWATER_TLS_CA": "/nowhere/ca.pem"})

    def test_files_that_hold_something_else(self, tmp_path: Path) -> None:
        files = make_certificates(tmp_path, [])
        other = make_certificates(tmp_path / "other", [])
        foreign_key = files.environment() | {"HEADWATER_TLS_KEY": str(other.key)}
        with pytest.raises(InvalidArgumentError, match="do not fit"):
            Security.from_environment(foreign_key).server_context()
        no_authority = files.environment() | {"HEADWATER_TLS_CA": str(files.key)}
        with pytest.raises(InvalidArgumentError, match="holds no certificate"):
            Security.from_environment(no_authority).client_context()


class TestWhoMayListen:
    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
    def test_on_this_machine(self, host: str) -> None:
        assert is_loopback(host)
        Security().check_may_listen(host)

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "no-such-host.invalid"])
    def test_for_others(self, host: str, tmp_path: Path) -> None:
        assert not is_loopback(host)
        with pytest.raises(PermissionDeniedError, match="has no authentication") as caught:
            Security().check_may_listen(host)
        for word in ("HEADWATER_TOKEN", "headwater certs", "--insecure"):
            assert word in caught.value.message
        for security in (
            Security(token="x"),
            Security(insecure=True),
            Security.from_environment(make_certificates(tmp_path, []).environment()),
        ):
            security.check_may_listen(host)

    def test_a_server_without_a_certificate_of_its_own(self, tmp_path: Path) -> None:
        security = Security(authority_file=make_certificates(tmp_path, []).authority)
        with pytest.raises(InvalidArgumentError, match="needs a certificate of its own"):
            security.check_may_listen("localhost")


class TestCertificates:
    def test_certificates_name_the_hosts(self, tmp_path: Path) -> None:
        files = make_certificates(tmp_path / "new", ["ps0.example", "10.0.0.7", "fe80::1", "ps0.example"])
        certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["ps0.example", "localhost"]
        addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
        assert addresses == ["10.0.0.7", "fe80::1", "127.0.0.1", "::1"]

    def test_keys_are_their_owners_alone(self, tmp_path: Path) -> None:
        files = make_certificates(tmp_path / "new", [])
        assert stat.S_IMODE(files.key.parent.stat().st_mode) == 0o700
        for file in (files.key, files.authority_key):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_nothing_is_overwritten(self, tmp_path: Path) -> None:
        files = make_certificates(tmp_path, [])
        content = files.key.read_bytes()
        files.authority_key.unlink()
        with pytest.raises(AlreadyExistsError, match=r"ca\.pem exists"):
            make_certificates(tmp_path, [])
        assert files.key.read_bytes() == content
        assert not files.authority_key.exists()

    def test_a_server_with_an_authority_asks_its_clients(self, tmp_path: Path) -> None:
        security = Security.from_environment(make_certificates(tmp_path, []).environment())
        assert security.server_context().verify_mode is ssl.CERT_REQUIRED
        assert security.client_context().check_hostname


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class TestProofs:
    def test_good_once(self) -> None:
        clock = Clock()
        checker = ProofChecker(lambda: SECRET, clock=clock)
        proof = make_proof(SECRET, METHOD, now=clock.now)
        assert checker.problem_with(METHOD, proof) is None
        assert checker.problem_with(METHOD, proof) == "the proof was used before"
        assert checker.problem_with(METHOD, make_proof(SECRET, METHOD, now=clock.now)) is None
        assert "secret" not in proof

    def test_for_another_call(self) -> None:
        clock = Clock()
        problem = ProofChecker(lambda: SECRET, clock=clock).problem_with(
            "/headwater.Task/Shutdown", make_proof(SECRET, METHOD, now=clock.now)
        )
        assert problem is not None
        assert "HEADWATER_TOKEN" in problem

    @pytest.mark.parametrize("skew", [-MAX_SKEW_S - 1, MAX_SKEW_S + 1])
    def test_clocks_that_differ(self, skew: float) -> None:
        clock = Clock()
        problem = ProofChecker(lambda: SECRET, clock=clock).problem_with(
            METHOD, make_proof(SECRET, METHOD, now=clock.now + skew)
        )
        assert problem == "the clocks of the two machines differ by 301 s; 300 s are allowed"

    def test_no_proof_is_good_again_after_it_was_forgotten(self) -> None:
        clock = Clock()
        checker = ProofChecker(lambda: SECRET, clock=clock)
        early, late = (make_proof(SECRET, METHOD, now=clock.now + skew) for skew in (-MAX_SKEW_S, MAX_SKEW_S))
        assert checker.problem_with(METHOD, early) is None
        assert checker.problem_with(METHOD, late) is None
        for _ in range(30):
            clock.now += MAX_SKEW_S / 10
            assert checker.problem_with(METHOD, early) is not None
            assert checker.problem_with(METHOD, late) is not None
            assert checker.problem_with(METHOD, make_proof(SECRET, METHOD, now=clock.now)) is None
        assert len(checker._seen) < 32

    def test_without_a_token_everybody_is_let_in(self) -> None:
        assert ProofChecker(Tokens).problem_with(METHOD, None) is None
        assert ProofChecker(Tokens).problem_with(METHOD, "whatever") is None

    @given(st.text() | st.none())
    def test_anything_else_is_refused(self, proof: str | None) -> None:
        problem = ProofChecker(lambda: SECRET, clock=Clock()).problem_with(METHOD, proof)
        assert problem is not None
        assert "secret" not in problem
