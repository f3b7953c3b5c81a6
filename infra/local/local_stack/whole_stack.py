"""The plan of the real stack: every service, and the gateway in front."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

import httpx

from local_stack.certificates import Certificates
from local_stack.demo_users import read_demo_users
from local_stack.gateway import KONG_FILE, Gateway
from local_stack.process_spec import ProcessSpec
from local_stack.process_table import ProcessTable
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_text import WholeStackText
from local_stack.supervisor import StackText

SECRET_BYTES = 32


def whole_stack(
    settings: Settings, directory: StackDirectory, client: httpx.AsyncClient
) -> tuple[Sequence[ProcessSpec], StackText]:
    """The processes and the stack file's text, with certificates and a fresh secret between gateway and edges."""
    certificates = Certificates(directory.tls)
    certificates.ensure(datetime.now(UTC))
    users = read_demo_users(KONG_FILE)
    operator = next(user for user in users.values() if "staff" in user.groups)
    secret = secrets.token_urlsafe(SECRET_BYTES)
    gateway = Gateway(directory.root, settings, certificates, secret, operator)
    specs = ProcessTable(settings, directory, gateway, secret, client).specs()
    return specs, WholeStackText(settings, certificates.authority, users)
