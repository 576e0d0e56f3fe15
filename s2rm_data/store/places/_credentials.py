"""The way to a bucket: endpoint and credentials, taken from where each cloud's own tools take them.

obstore reads the environment by itself (AWS_*, GOOGLE_*, AZURE_*), and asks the machine it runs on in the cloud. What
it leaves out, and `aws` does not, are the files in ~/.aws; these are read here."""

from __future__ import annotations

import configparser
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from s2rm_data.core.addresses import Url
from s2rm_data.core.errors import UsageError

# What leads to another server than the cloud's own, such as an emulator; the first that is set counts.
ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
# How each cloud is told who asks.
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login",
    "az": "AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
}
RETRIES: Any = {
    "max_retries": 5,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5), "base": 2},
}
# A whole shard may take minutes on a slow line; a server that says nothing for this long has gone.
TIMEOUTS = {"timeout": timedelta(minutes=15), "connect_timeout": timedelta(seconds=5), "read_timeout": "60s"}


def object_store(url: Url) -> Any:
    from obstore.store import AzureStore, GCSStore, S3Store

    kinds: Any = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
    scheme, _, rest = url.text.partition("://")
    bucket, _, prefix = rest.partition("/")
    config: Any = {"checksum_algorithm": "SHA256", **_aws_config()} if scheme == "s3" else {}
    given = (os.environ[name] for name in ENDPOINTS[scheme] if os.environ.get(name))
    endpoint = next(given, config.get("endpoint", ""))
    options: Any = {**TIMEOUTS, **({"allow_http": True} if endpoint.startswith("http://") else {})}
    try:
        return kinds[scheme](bucket, prefix=prefix, config=config or None, client_options=options, retry_config=RETRIES)
    except Exception as error:  # noqa: BLE001 - obstore raises whatever its configuration parser does
        reason = " ".join(str(error).partition("Debug source")[0].split())[:300]
        raise UsageError(f"{url} cannot be used: {reason}. Credentials are taken from {CREDENTIALS[scheme]}") from None


def _aws_config() -> dict[str, str]:
    """What ~/.aws says and the environment does not, of the profile that AWS_PROFILE names."""
    profile = os.environ.get("AWS_PROFILE", "default")
    secret = _section("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile)
    settings = _section("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}")
    found: dict[str, str] = {}
    if "AWS_ACCESS_KEY_ID" not in os.environ:
        merged = {**settings, **secret}
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        found |= {name: merged[name] for name in names if merged.get(name)}
    if settings.get("region") and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & {*os.environ}:
        found["region"] = settings["region"]
    if settings.get("endpoint_url") and not {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} & {*os.environ}:
        found["endpoint"] = settings["endpoint_url"]
    return found


def _section(variable: str, name: str, section: str) -> dict[str, str]:
    path = Path(os.environ.get(variable) or Path.home() / ".aws" / name)
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    return dict(parser[section]) if parser.has_section(section) else {}
