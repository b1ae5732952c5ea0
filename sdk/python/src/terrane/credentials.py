"""Credentials of a client. Secrets appear in no representation and in no exception."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from terrane.errors import UnauthorizedError
from terrane.session import Call, Locked, Operation, Session
from terrane.wire import from_wire

RENEWAL_MARGIN_SECONDS = 30.0


class Credentials(Protocol):
    """A source of bearer tokens. `renewable` is true if the source can replace a rejected token."""

    renewable: bool

    def token(self, session: Session, refused: str | None) -> Operation[str | None]:
        """Return the token for the next request. A renewable source replaces a `refused` token."""


class StaticToken:
    """An API key or an access token, or None for anonymous requests."""

    renewable = False

    def __init__(self, secret: str | None) -> None:
        self._secret = secret

    def token(self, session: Session, refused: str | None) -> Operation[str | None]:  # noqa: ARG002
        """Return the secret."""
        return self._secret
        yield  # makes this function a generator

    def __repr__(self) -> str:
        return "StaticToken(***)"


@dataclass(frozen=True)
class Tokens:
    """The tokens of a sign-in session. A refresh token can be used once."""

    access_token: str = field(repr=False)
    expires_in: float
    refresh_token: str = field(repr=False)
    received_at: float = field(default_factory=time.monotonic)

    def is_fresh(self) -> bool:
        """Return true if the access token is valid for at least another 30 seconds, or half of a shorter lifetime."""
        margin = min(RENEWAL_MARGIN_SECONDS, self.expires_in / 2)
        return time.monotonic() < self.received_at + self.expires_in - margin


class Login:
    """A sign-in with a user name and a password, whose access token is renewed when it expires.

    One request at a time renews the tokens, because the server ends a session whose refresh token is used twice.
    """

    renewable = True

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        self._tokens: Tokens | None = None

    def token(self, session: Session, refused: str | None) -> Operation[str | None]:
        """Return an access token; sign in or refresh the session if there is none, or if it expired or was refused."""
        tokens = self._usable(refused)
        if tokens is None:
            tokens = yield Locked(self._renew(session, refused))
        return tokens.access_token

    def _renew(self, session: Session, refused: str | None) -> Operation[Tokens]:
        """Renew the tokens, unless another request has done so while this one waited for the lock."""
        tokens = self._usable(refused)
        if tokens is None:
            tokens = (yield from self._refresh(session)) or (yield from self._sign_in(session))
            self._tokens = tokens
        return tokens

    def _refresh(self, session: Session) -> Operation[Tokens | None]:
        """Return new tokens for the refresh token, or None if there is none or the session has ended."""
        tokens, self._tokens = self._tokens, None
        if tokens is None:
            return None
        try:
            return (yield from session.perform(_token_call("refresh", {"refresh_token": tokens.refresh_token})))
        except UnauthorizedError:
            return None

    def _sign_in(self, session: Session) -> Operation[Tokens]:
        credentials = {"username": self._username, "password": self._password}
        return (yield from session.perform(_token_call("token", credentials)))

    def _usable(self, refused: str | None) -> Tokens | None:
        tokens = self._tokens
        return tokens if tokens and tokens.is_fresh() and tokens.access_token != refused else None

    def __repr__(self) -> str:
        return "Login(***)"


def _token_call(action: str, body: dict[str, str]) -> Call[Tokens]:
    """Return the request for tokens. A refresh is never repeated, because its token can be used once."""
    return Call(
        "POST",
        f"/api/v1/auth/{action}",
        _parse_tokens,
        json=body,
        idempotent=action == "token",
        authenticated=False,
    )


def _parse_tokens(response: httpx.Response) -> Tokens:
    return from_wire(Tokens, response.json())


def choose_credentials(
    api_key: str | None, token: str | None, username: str | None, password: str | None
) -> Credentials:
    """Return the credentials that the arguments of a client specify. At most one kind is accepted."""
    if (username is None) != (password is None):
        raise ValueError("username and password must be given together")
    if sum(value is not None for value in (api_key, token, username)) > 1:
        raise ValueError("expected one of api_key, token, or username and password")
    if username is not None and password is not None:
        return Login(username, password)
    secret = token if api_key is None else api_key
    if secret is not None and not (secret and secret.isascii() and secret.isprintable() and " " not in secret):
        raise ValueError("expected a credential of visible ASCII characters")
    return StaticToken(secret)
