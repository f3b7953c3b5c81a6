"""A phone that shows tokens, which expire."""

import time

import httpx
import jwt

from drivers.mobile import Frame, Phone
from drivers.participants import as_gateway
from drivers.waiting import scaled
from local_stack.running_stack import RunningStack


class TokenPhone(Phone):
    """The phone of a demo user with a token that is good for `seconds`, stretched as all waiting is."""

    def __init__(self, stack: RunningStack, user: str, seconds: float) -> None:
        credentials = stack.file.credentials[user].jwt
        assert credentials is not None, f"{user} has no secret for tokens"
        claims = {"iss": credentials.key, "iat": int(time.time()), "exp": int(time.time() + scaled(seconds))}
        self.token = jwt.encode(claims, credentials.secret, algorithm=credentials.algorithm)
        self._gateway = as_gateway(stack)
        self.headers = {"Authorization": f"Bearer {self.token}"}

    def ticket(self) -> Frame:
        """What the edge answers to whoever asks for a ticket with this token."""
        url = f"{self._gateway.https}/v1/tickets"
        answer = httpx.post(url, headers=self.headers, verify=self._gateway.tls(), timeout=scaled(10))
        assert answer.status_code == 200, answer.text
        told: Frame = answer.json()
        return told
