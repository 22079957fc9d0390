"""TLS and SASL, as librdkafka and kafka-python do them, with the rights that users have."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
import trustme
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from lakelog import Lakelog
from lakelog.errors import HotTierAccessError, InvalidArgumentError
from lakelog.gateway.gateway import Gateway
from lakelog.gateway.protocol.codes import ErrorCode
from lakelog.gateway.protocol.messages import (
    ApiVersionsRequest,
    DescribeUserScramCredentialsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from lakelog.gateway.sasl import MECHANISMS
from lakelog.gateway.users import ScramUsers
from lakelog.operate.acl.acl import acl
from lakelog.testing.eventually import eventually
from tests.gateway.raw_client import RawClient, framed
from tests.support.servers import RedisServer

TIMEOUT_S = 30
ADA, PASSWORD = "ada", "se äsame,=x"
BOTH_ADDRESSES = ("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> Path:
    """A folder with ``ca.pem``, and with ``cert.pem`` and ``key.pem`` of the gateway."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert(*BOTH_ADDRESSES)
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for one in issued.cert_chain_pems:
        one.write_to_path(str(tmp_path / "cert.pem"), append=True)
    return tmp_path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Of these tests alone, since its users outlive the test's data."""
    started = RedisServer(tmp_path_factory.mktemp("redis")).start()
    try:
        yield started
    finally:
        started.kill(at_once=True)


@pytest.fixture
def lake(server: RedisServer, tmp_path: Path) -> Iterator[Lakelog]:
    with server.client() as client:
        client.flushall()
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as opened:
        opened.topics.create("orders", 1)
        opened.topics.create("others", 1)
        ScramUsers(opened.hot).set(ADA, PASSWORD)
        yield opened


@pytest.fixture
def make_user(server: RedisServer) -> Callable[..., str]:
    """``make_user("producer", "orders")``: a user of Redis with `PASSWORD`; its name."""

    def make(role: str, topics: Any = "*", **more: Any) -> str:
        made = acl(role, topics, **more)
        with server.client() as client:
            client.execute_command("ACL SETUSER", made.user, *made.redis, f">{PASSWORD}")
        return made.user

    return make


@pytest.fixture
def secured(make_gateway: Any, files: Path) -> Gateway:
    made: Gateway = make_gateway(
        tls_cert=str(files / "cert.pem"),
        tls_key=str(files / "key.pem"),
        sasl_mechanisms=MECHANISMS,
    )
    return made


@pytest.fixture
def plain(make_gateway: Any) -> Gateway:
    """With passwords, and without TLS, on this machine alone."""
    made: Gateway = make_gateway(sasl_mechanisms=MECHANISMS)
    return made


@pytest.fixture
def as_user(secured: Gateway, files: Path) -> Callable[..., dict[str, Any]]:
    """What a client of librdkafka is configured with."""

    def config(
        user: str = ADA, password: str = PASSWORD, mechanism: str = "SCRAM-SHA-256", **more: Any
    ) -> dict[str, Any]:
        return {
            "bootstrap.servers": secured.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(files / "ca.pem"),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            **more,
        }

    return config


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What the gateway has logged so far, as warnings or worse."""
    caplog.set_level(logging.INFO, "lakelog")
    return lambda: [
        record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING
    ]


def sent(config: dict[str, Any], topic: str = "orders") -> ck.KafkaError | None:
    """What became of one record."""
    answers: list[ck.KafkaError | None] = []
    producer = ck.Producer(config)
    producer.produce(topic, b"v", on_delivery=lambda error, _: answers.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return answers[0]


def received(config: dict[str, Any], topic: str = "orders", group: str = "g") -> ck.Message:
    """The first record, or what a consumer hears instead."""
    consumer = ck.Consumer({"group.id": group, "auto.offset.reset": "earliest", **config})
    with closing(consumer):
        consumer.subscribe([topic])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        return message


def refusal(config: dict[str, Any]) -> str:
    """Why a client does not get in."""
    errors: list[ck.KafkaError] = []
    client = AdminClient({**config, "error_cb": errors.append})
    while not errors:
        client.poll(0.05)
    return errors[0].str()


# -- who gets in ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_by_every_mechanism(
    as_user: Any, make_user: Any, said: Any, mechanism: str
) -> None:
    user = make_user("admin") if mechanism == "PLAIN" else ADA
    config = as_user(user, mechanism=mechanism)
    assert sent(config) is None
    assert received(config).value() == b"v"
    assert said() == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_by_every_mechanism(
    secured: Gateway, files: Path, make_user: Any, mechanism: str
) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    config = {
        "bootstrap_servers": secured.bootstrap_servers,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(files / "ca.pem"),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": make_user("admin") if mechanism == "PLAIN" else ADA,
        "sasl_plain_password": PASSWORD,
    }
    with KafkaProducer(**config) as producer:
        assert producer.send("orders", b"v").get(TIMEOUT_S).offset == 0
    consumer = KafkaConsumer("orders", group_id="g", auto_offset_reset="earliest", **config)
    assert next(consumer).value == b"v"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_and_logged_without_it(
    as_user: Any, make_user: Any, said: Any, mechanism: str
) -> None:
    user = make_user("admin") if mechanism == "PLAIN" else ADA
    for name in (user, "nobody"):
        told = refusal(as_user(name, "wr0ng", mechanism))
        assert "the user or the password is wrong" in told
        assert f"the login of {name} failed: the user or the password is wrong" in said()[-1]
    assert not any("wr0ng" in line or PASSWORD in line for line in said())


def test_a_user_of_redis_that_any_password_lets_in_does_not_get_in(as_user: Any) -> None:
    assert "nopass" in refusal(as_user("default", "anything", "PLAIN"))


def test_a_user_of_redis_that_may_nothing_hears_what_it_lacks(
    as_user: Any, server: RedisServer, said: Any
) -> None:
    with server.client() as client:
        client.execute_command("ACL SETUSER", "poor", "reset", "on", f">{PASSWORD}")
    told = refusal(as_user("poor", mechanism="PLAIN"))
    assert "lakelog acl ROLE" in told
    assert "127.0.0.1:" + str(server.port) not in told  # where Redis is, is for the log
    assert len(said()) == 1


def test_a_password_that_was_changed_lets_nobody_in_from_then_on(
    as_user: Any, make_user: Any, server: RedisServer
) -> None:
    user = make_user("admin")
    assert sent(as_user(user, mechanism="PLAIN")) is None
    with server.client() as client:
        client.execute_command("ACL SETUSER", user, "resetpass", ">another")
    assert "wrong" in refusal(as_user(user, mechanism="PLAIN"))
    assert sent(as_user(user, "another", "PLAIN")) is None


def test_clients_of_a_user_share_its_connections(
    as_user: Any, make_user: Any, lake: Lakelog, server: RedisServer
) -> None:
    def connections() -> int:
        with server.client() as client:
            return sum(one["user"] == user for one in client.client_list())

    user = make_user("admin")
    producers = [ck.Producer(as_user(user, mechanism="PLAIN")) for _ in range(5)]
    for producer in producers:
        producer.produce("orders", b"v")
        assert producer.flush(TIMEOUT_S) == 0
    assert 0 < connections() <= 4


# -- what they may -------------------------------------------------------------------------------


def test_a_producer_and_a_consumer_may_what_their_users_of_redis_may(
    as_user: Any, make_user: Any
) -> None:
    producer = as_user(make_user("producer", "orders"), mechanism="PLAIN")
    consumer = as_user(make_user("consumer", "orders", groups="g"), mechanism="PLAIN")
    assert sent(producer, "orders") is None
    denied = sent(producer, "others")
    assert denied is not None
    assert denied.code() == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED
    denied = sent(consumer, "orders")
    assert denied is not None
    assert denied.code() == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert received(consumer, "orders").value() == b"v"
    for user, topic, group, code in (
        (consumer, "others", "g", ck.KafkaError.TOPIC_AUTHORIZATION_FAILED),
        (consumer, "orders", "h", ck.KafkaError.GROUP_AUTHORIZATION_FAILED),
        (producer, "orders", "g", ck.KafkaError.GROUP_AUTHORIZATION_FAILED),
    ):
        heard = received(user, topic, group).error()
        assert heard is not None
        assert heard.code() == code


def test_only_an_admin_changes_topics_and_settings(as_user: Any, make_user: Any) -> None:
    def changed(user: str) -> list[int]:
        client = AdminClient(as_user(user, mechanism="PLAIN"))
        entry = ConfigEntry(
            "log.retention.hours", str(len(user)), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        futures = [
            client.create_topics([NewTopic(f"of-{user}", 1)])[f"of-{user}"],
            client.incremental_alter_configs([resource])[resource],
            client.list_consumer_groups(),
        ]
        codes = []
        for future in futures:
            try:
                found = future.result(TIMEOUT_S)
                errors = getattr(found, "errors", None) or []
                codes.append(errors[0].code() if errors else 0)
            except ck.KafkaException as error:
                codes.append(error.args[0].code())
        return codes

    assert changed(make_user("admin")) == [0, 0, 0]
    assert changed(make_user("producer", "orders")) == [
        ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        ck.KafkaError.GROUP_AUTHORIZATION_FAILED,
    ]


def test_rights_are_not_changed_by_kafkas_way_and_clients_hear_by_which(as_user: Any) -> None:
    what = (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:a", "*")
    how = (AclOperation.READ, AclPermissionType.ALLOW)
    client = AdminClient(as_user())
    binding, wanted = AclBinding(*what, *how), AclBindingFilter(*what, *how)
    for future in (client.create_acls([binding])[binding], client.delete_acls([wanted])[wanted]):
        with pytest.raises(ck.KafkaException) as refused:
            future.result(TIMEOUT_S)
        assert refused.value.args[0].code() == ck.KafkaError.SECURITY_DISABLED
        assert "lakelog acl" in refused.value.args[0].str()


def test_users_are_made_described_and_deleted_by_an_admin_of_kafkas(
    as_user: Any, make_user: Any
) -> None:
    client = AdminClient(as_user(make_user("admin"), mechanism="PLAIN"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096)
    made = UserScramCredentialUpsertion("bob", info, b"hello", b"salt and more")
    client.alter_user_scram_credentials([made])["bob"].result(TIMEOUT_S)
    assert sent(as_user("bob", "hello", "SCRAM-SHA-512")) is None
    described = client.describe_user_scram_credentials().result(TIMEOUT_S)
    assert sorted(described) == [ADA, "bob"]
    (found,) = described["bob"].scram_credential_infos
    assert (found.mechanism, found.iterations) == (ScramMechanism.SCRAM_SHA_512, 4_096)
    gone = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512)
    client.alter_user_scram_credentials([gone])["bob"].result(TIMEOUT_S)
    assert "wrong" in refusal(as_user("bob", "hello", "SCRAM-SHA-512"))


def test_users_are_no_matter_of_those_who_are_no_admin(as_user: Any, make_user: Any) -> None:
    producer = as_user(make_user("producer", "orders"), mechanism="PLAIN")
    gone = UserScramCredentialDeletion(ADA, ScramMechanism.SCRAM_SHA_256)
    for config in (producer, as_user()):
        client = AdminClient(config)
        altered = client.alter_user_scram_credentials([gone])
        with pytest.raises(ck.KafkaException) as refused:
            altered[ADA].result(TIMEOUT_S)
        assert refused.value.args[0].code() == ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert sent(as_user()) is None


def test_who_is_no_admin_does_not_see_users(plain: Gateway, make_user: Any) -> None:
    token = f"\0{make_user('producer', 'orders')}\0{PASSWORD}".encode()
    with RawClient(plain.bootstrap_servers) as client:
        client.ask(SaslHandshakeRequest("PLAIN"), 1)
        client.ask(SaslAuthenticateRequest(token), 2)
        answer = client.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# -- step by step --------------------------------------------------------------------------------


def test_a_stranger_is_answered_nothing_but_how_to_get_in(plain: Gateway, said: Any) -> None:
    with RawClient(plain.bootstrap_servers) as client:
        keys = {one.api_key for one in client.ask(ApiVersionsRequest(), 3).api_keys}
        assert {17, 36} <= keys
        client.ask(SaslHandshakeRequest("PLAIN"), 1)
        with pytest.raises(ConnectionError):
            client.ask(MetadataRequest(topics=None), 9)
    (line,) = said()
    assert "asks for Metadata before it has said who it is" in line


def test_a_stranger_may_send_little(plain: Gateway, said: Any) -> None:
    with RawClient(plain.bootstrap_servers) as client:
        client.send((100_000).to_bytes(4, "big"))
        assert client.is_closed()
    assert "100000 bytes" in said()[0]


def test_plain_with_and_without_frames_of_kafkas(plain: Gateway, make_user: Any) -> None:
    token = f"\0{make_user('admin')}\0{PASSWORD}".encode()
    with RawClient(plain.bootstrap_servers) as client:
        assert client.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
        answer = client.ask(SaslAuthenticateRequest(token), 2)
        assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
        assert client.ask(MetadataRequest(topics=None), 9).topics
    with RawClient(plain.bootstrap_servers) as client:
        assert client.ask(SaslHandshakeRequest("PLAIN"), 0).error_code == 0
        client.send(framed(token))
        assert client.answer() == b""
        assert client.ask(MetadataRequest(topics=None), 9).topics
    with RawClient(plain.bootstrap_servers) as client:
        client.ask(SaslHandshakeRequest("PLAIN"), 0)
        client.send(framed(token + b"!"))
        assert client.is_closed()


def test_what_is_not_offered_is_refused_with_what_is(plain: Gateway, said: Any) -> None:
    with RawClient(plain.bootstrap_servers) as client:
        answer = client.ask(SaslHandshakeRequest("GSSAPI"), 1)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert tuple(answer.mechanisms) == MECHANISMS
        assert client.is_closed()
    assert "GSSAPI" in said()[0]


def test_who_is_in_may_prove_it_again_but_be_nobody_else(plain: Gateway, make_user: Any) -> None:
    with RawClient(plain.bootstrap_servers) as client:
        for user, code in (
            (make_user("admin", user="first"), ErrorCode.NONE),
            ("first", ErrorCode.NONE),
            (make_user("admin", user="second"), ErrorCode.SASL_AUTHENTICATION_FAILED),
        ):
            client.ask(SaslHandshakeRequest("PLAIN"), 1)
            answer = client.ask(SaslAuthenticateRequest(f"\0{user}\0{PASSWORD}".encode()), 1)
            assert answer.error_code == code
        assert client.is_closed()


def test_a_handshake_where_nobody_is_asked_who_they_are(gateway: Gateway, said: Any) -> None:
    with RawClient(gateway.bootstrap_servers) as client:
        keys = {one.api_key for one in client.ask(ApiVersionsRequest(), 3).api_keys}
        assert not {17, 36} & keys
        answer = client.ask(SaslHandshakeRequest("PLAIN"), 1)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert client.is_closed()
    assert "not switched on" in said()[0]


def test_what_a_client_calls_itself_makes_no_lines_of_the_log(gateway: Gateway, said: Any) -> None:
    request = ApiVersionsRequest("name\nWARNING of ours", "v" * 1_000)
    with RawClient(gateway.bootstrap_servers) as client:
        client.ask(request, 3)
        client.send(b"\xff" * 8)
        assert client.is_closed()
    (line,) = said()
    assert "\n" not in line
    assert len(line) < 300


# -- TLS -----------------------------------------------------------------------------------------


def test_tls_alone(make_gateway: Any, files: Path) -> None:
    gateway = make_gateway(tls_cert=str(files / "cert.pem"), tls_key=str(files / "key.pem"))
    config = {
        "bootstrap.servers": gateway.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.ca.location": str(files / "ca.pem"),
    }
    assert sent(config) is None
    assert received(config).value() == b"v"


def test_old_tls_is_not_spoken(secured: Gateway, files: Path, said: Any) -> None:
    old = ssl.create_default_context(cafile=str(files / "ca.pem"))
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)), RawClient(secured.bootstrap_servers, old):
        pass


def test_a_client_without_tls_and_one_without_trust_are_one_line_each(
    secured: Gateway, said: Any
) -> None:
    with RawClient(secured.bootstrap_servers) as client:
        client.send(b"\0\0\0\x10\0\x12\0\0" + bytes(12))
        while not client.is_closed():  # an alert may come before
            pass
    wait_for_lines(said, 1)  # it closes the connection, and says so then
    (line,) = said()
    assert "does not speak TLS" in line
    with pytest.raises(ssl.SSLError):
        RawClient(secured.bootstrap_servers, ssl.create_default_context())
    with RawClient(secured.bootstrap_servers):
        pass  # who only looks whether the port is open is no line
    wait_for_lines(said, 2)
    assert "does not trust" in said()[1]
    assert secured.connection_count == 0


def wait_for_lines(said: Callable[[], list[str]], count: int) -> None:
    eventually(lambda: len(said()) >= count)


def test_a_client_with_tls_where_there_is_none_is_one_line(gateway: Gateway, said: Any) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        RawClient(gateway.bootstrap_servers, ssl.create_default_context())
    wait_for_lines(said, 1)
    (line,) = said()
    assert "begins TLS, which is not switched on here" in line


def test_clients_may_have_to_show_a_certificate(
    make_gateway: Any, files: Path, authority: trustme.CA, said: Any
) -> None:
    gateway = make_gateway(
        tls_cert=str(files / "cert.pem"),
        tls_key=str(files / "key.pem"),
        tls_client_ca=str(files / "ca.pem"),
    )
    own = authority.issue_cert("client.example")
    own.private_key_and_cert_chain_pem.write_to_path(str(files / "own.pem"))
    known = ssl.create_default_context(cafile=str(files / "ca.pem"))
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),
        RawClient(gateway.bootstrap_servers, known) as client,
    ):
        client.ask(ApiVersionsRequest(), 3)
    wait_for_lines(said, 1)
    assert "shows no certificate" in said()[0]
    known.load_cert_chain(files / "own.pem")
    with RawClient(gateway.bootstrap_servers, known) as client:
        assert client.ask(ApiVersionsRequest(), 3).error_code == 0


def test_files_that_make_no_tls_are_named(
    make_gateway: Any, files: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cryptography.hazmat.primitives import serialization as pem

    key = pem.load_pem_private_key((files / "key.pem").read_bytes(), None)
    locked = pem.BestAvailableEncryption(b"sesame")
    given = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, locked)
    (files / "locked.pem").write_bytes(key.private_bytes(*given))
    authority.issue_cert("x").private_key_pem.write_to_path(str(files / "other.pem"))
    (files / "text").write_text("no PEM")
    monkeypatch.setenv("WRONG", "wrong")
    monkeypatch.setenv("RIGHT", "sesame")

    def path(name: str) -> str:
        return str(files / name)

    cert, right = path("cert.pem"), path("key.pem")
    for settings, told in (
        ({"tls_cert": path("gone"), "tls_key": right}, "gone.*cannot be read"),
        ({"tls_cert": cert, "tls_key": path("gone")}, "gone.*cannot be read"),
        ({"tls_cert": path("text"), "tls_key": right}, "PEM"),
        ({"tls_cert": cert}, "PEM"),
        ({"tls_cert": cert, "tls_key": path("other.pem")}, "do not belong together"),
        ({"tls_cert": cert, "tls_key": path("locked.pem")}, "has a password"),
        (
            {"tls_cert": cert, "tls_key": path("locked.pem"), "tls_key_password_ref": "env:WRONG"},
            "not the password of the key",
        ),
        ({"tls_cert": cert, "tls_key": right, "tls_client_ca": path("text")}, "no certificate"),
        ({"tls_key": right}, "no certificate is named|no certificate"),
    ):
        with pytest.raises(InvalidArgumentError, match=told) as refused:
            make_gateway(**settings)
        assert "sesame" not in str(refused.value)
    ok = {"tls_cert": cert, "tls_key": path("locked.pem"), "tls_key_password_ref": "env:RIGHT"}
    make_gateway(**ok)


# -- where it listens ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "without a password"),
        ({"allows_plaintext": True}, "without a password"),
        ({"tls_cert": "cert.pem", "tls_key": "key.pem"}, "without a password"),
        ({"sasl_mechanisms": ("PLAIN",)}, "in clear"),
    ],
)
def test_other_machines_are_served_only_if_they_are_known_and_told_in_secret(
    lake: Lakelog, settings: Any, told: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        lake.gateway("0.0.0.0:0", **settings)


def test_other_machines_are_served_with_both(lake: Lakelog, files: Path) -> None:
    tls = {"tls_cert": str(files / "cert.pem"), "tls_key": str(files / "key.pem")}
    for settings in (
        {"sasl_mechanisms": ("SCRAM-SHA-256",), **tls},
        {"sasl_mechanisms": ("SCRAM-SHA-256",), "allows_plaintext": True},
        {"tls_client_ca": str(files / "ca.pem"), **tls},
    ):
        with lake.gateway("0.0.0.0:0", advertise="127.0.0.1:9092", **settings) as gateway:
            assert gateway.is_serving


def test_an_unknown_mechanism_is_refused(lake: Lakelog) -> None:
    with pytest.raises(InvalidArgumentError, match="GSSAPI"):
        lake.gateway("127.0.0.1:0", sasl_mechanisms=("GSSAPI",))


def test_a_gateway_that_cannot_look_users_up_does_not_start(
    server: RedisServer, make_user: Any, lake: Lakelog, tmp_path: Path
) -> None:
    other = lake.as_user(make_user("producer"), PASSWORD)
    with closing(other), pytest.raises(HotTierAccessError):
        other.gateway("127.0.0.1:0", sasl_mechanisms=("SCRAM-SHA-256",))
