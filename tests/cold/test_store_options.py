"""One spelling of what opens a store, told to delta-rs, Arrow and Spark, and to nobody else."""

from __future__ import annotations

import pickle

import pytest

from lakelog.cold.store.storage import Storage
from lakelog.cold.store.store_options import NAMES, SECRETS, StoreOptions, parse_options
from lakelog.errors import InvalidArgumentError

AZURE = "abfss://box@account.dfs.core.windows.net/logs"
WORD = "s3cret/w0rd"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch):
    for name in (*NAMES["s3"], *NAMES["abfss"], "AWS_DEFAULT_REGION", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)


def values(storage: Storage) -> dict[str, str]:
    """delta-rs's options that are the user's."""
    legal = NAMES["s3"] + NAMES["abfss"]
    return {name: value for name, value in storage.delta_options().items() if name in legal}


def test_what_is_given_goes_over_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "theirs")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "theirs too")
    assert values(Storage("s3://bucket")) == {
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "theirs",
        "AWS_SECRET_ACCESS_KEY": "theirs too",
    }
    own = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": WORD}
    assert values(Storage("s3://bucket", own)) == {**own, "AWS_REGION": "eu-west-1"}


def test_credentials_of_two_places_are_not_mixed(monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "theirs")
    own = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": WORD, "AWS_REGION": "x"}
    with pytest.raises(InvalidArgumentError, match="AWS_SESSION_TOKEN is in the environment"):
        Storage("s3://bucket", own).delta_options()
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "theirs")
    key = {"AZURE_STORAGE_ACCOUNT_KEY": "bWluZQ=="}
    assert values(Storage(AZURE, key)) == key


def test_half_a_key_is_refused(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "alone")
    with pytest.raises(InvalidArgumentError, match="AWS_SECRET_ACCESS_KEY is not"):
        Storage("s3://bucket", {"AWS_REGION": "x"}).delta_options()


def test_references_are_resolved_where_the_store_is_opened(monkeypatch):
    options = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "env:WORD", "AWS_REGION": "x"}
    storage = pickle.loads(pickle.dumps(Storage("s3://bucket", options)))
    with pytest.raises(InvalidArgumentError, match="WORD is not set"):
        storage.delta_options()
    monkeypatch.setenv("WORD", WORD)
    assert storage.delta_options()["AWS_SECRET_ACCESS_KEY"] == WORD
    assert storage.spark_options()["fs.s3a.secret.key"] == WORD
    assert WORD not in repr(storage)
    assert WORD.encode() not in pickle.dumps(storage)


@pytest.mark.parametrize("secret", sorted(SECRETS))
def test_a_secret_in_clear_is_shown_nowhere(secret):
    root = "s3://bucket" if secret.startswith("AWS") else AZURE
    storage = Storage(root, {secret: WORD})
    assert WORD not in repr(storage)
    assert WORD not in repr(storage.store_options)
    assert storage == pickle.loads(pickle.dumps(storage))
    with pytest.raises(InvalidArgumentError, match=f"{secret} is a secret in clear") as refused:
        storage.store_options.portable()
    assert WORD not in str(refused.value)
    with pytest.raises(InvalidArgumentError, match="would show a secret") as refused:
        parse_options([f"{secret}={WORD}"])
    assert WORD not in str(refused.value)


@pytest.mark.parametrize(
    ("root", "options", "why"),
    [
        ("/data/logs", {"AWS_REGION": "x"}, "a folder takes no storage options"),
        ("gs://bucket", {"GOOGLE_KEY": WORD}, "set GOOGLE_APPLICATION_CREDENTIALS"),
        ("s3://bucket", {"AWS_SECRET_KEY": WORD}, "did you mean AWS_SECRET_ACCESS_KEY"),
        ("s3://bucket", {"aws_region": "x"}, "did you mean AWS_REGION"),
        ("s3://bucket", {"AWS_REGION": ""}, "is empty"),
        ("s3://bucket", {"CREDENTIALS": "mine"}, "is not 'unity-catalog'"),
        (
            "s3://bucket",
            {"CREDENTIALS": "unity-catalog", "AWS_SECRET_ACCESS_KEY": WORD},
            "contradict each other",
        ),
        (AZURE, {"AWS_REGION": "x"}, "abfss:// takes no storage option 'AWS_REGION'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(root, options, why):
    with pytest.raises(InvalidArgumentError, match=why) as refused:
        Storage(root, options)
    assert WORD not in str(refused.value)


@pytest.mark.parametrize(
    "root",
    [
        f"s3://key:{WORD}@bucket/logs",
        "s3://bucket/two words",
        "s3://bucket/50%25",
        "abfss://account.dfs.core.windows.net/box/logs",
        f"gs://bucket/logs?key={WORD}",
    ],
)
def test_urls_that_the_libraries_read_differently_are_refused_and_not_repeated(root):
    with pytest.raises(InvalidArgumentError, match="cold root is written") as refused:
        Storage(root)
    assert WORD not in str(refused.value)


def test_the_command_line_takes_names_and_values():
    assert parse_options(["AWS_ENDPOINT_URL=http://host:9?a=b", "AWS_SESSION_TOKEN=env:T"]) == {
        "AWS_ENDPOINT_URL": "http://host:9?a=b",
        "AWS_SESSION_TOKEN": "env:T",
    }
    with pytest.raises(InvalidArgumentError, match="write NAME=VALUE"):
        parse_options(["AWS_REGION"])


# -- Spark's names -----------------------------------------------------------------------------


def test_s3_as_spark_knows_it(monkeypatch):
    options = {
        "AWS_ACCESS_KEY_ID": "mine",
        "AWS_SECRET_ACCESS_KEY": WORD,
        "AWS_ENDPOINT_URL": "http://host:9000",
    }
    provider = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    expected = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": "http://host:9000",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.aws.credentials.provider": provider,
        "fs.s3a.access.key": "mine",
        "fs.s3a.secret.key": WORD,
    }
    assert Storage("s3://bucket", options).spark_options() == expected
    options["AWS_SESSION_TOKEN"] = "t"
    assert Storage("s3://bucket", options).spark_options() == {
        **expected,
        "fs.s3a.aws.credentials.provider": provider.replace("Simple", "Temporary"),
        "fs.s3a.session.token": "t",
    }
    assert Storage("/data").spark_options() == {}


def test_azure_as_spark_knows_it():
    at = "account.dfs.core.windows.net"
    cases = (
        ({"AZURE_STORAGE_ACCOUNT_KEY": WORD}, {f"fs.azure.account.key.{at}": WORD}),
        (
            {"AZURE_STORAGE_SAS_TOKEN": "?sig=x"},
            {f"fs.azure.account.auth.type.{at}": "SAS", f"fs.azure.sas.fixed.token.{at}": "sig=x"},
        ),
        (
            {"AZURE_TENANT_ID": "T", "AZURE_CLIENT_ID": "C", "AZURE_CLIENT_SECRET": WORD},
            {
                f"fs.azure.account.auth.type.{at}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{at}": (
                    "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
                ),
                f"fs.azure.account.oauth2.client.endpoint.{at}": (
                    "https://login.microsoftonline.com/T/oauth2/token"
                ),
                f"fs.azure.account.oauth2.client.id.{at}": "C",
                f"fs.azure.account.oauth2.client.secret.{at}": WORD,
            },
        ),
        ({}, {}),
    )
    for options, expected in cases:
        assert Storage(AZURE, options).spark_options() == expected


def test_a_databricks_cluster_knows_its_stores_itself(monkeypatch):
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", WORD)
    assert Storage(AZURE).spark_options() == {}
    assert Storage(AZURE, {"AZURE_STORAGE_ACCOUNT_KEY": "own"}).spark_options() != {}


def test_paths_in_a_container_are_named_as_arrow_names_them():
    storage = Storage(AZURE)
    assert storage.arrow_path(f"{AZURE}/orders/a=1") == "box/logs/orders/a=1"
    assert StoreOptions.of("abfss", None) == storage.store_options
