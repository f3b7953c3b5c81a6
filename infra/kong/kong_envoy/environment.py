"""Takes the values that the file leaves to the environment, in the two forms that Kong has for them.

`{vault://env/NAME}` is Kong's reference, for fields that it calls referenceable: NAME in upper case with underscores
is the variable; a name with underscores is another reference to the same one. A template of request-transformer is Lua:
only the form that falls back to a literal is carried over, because Kong's sandbox has
`os.getenv` only where the operator has allowed it.
"""

import re
from collections.abc import Mapping

from kong_envoy.errors import KongEnvoyError, UnsupportedError

REFERENCE = re.compile(r"\{vault://env/([a-z0-9_-]+)\}")
TEMPLATE = re.compile(r'\$\(os and os\.getenv\("([A-Z0-9_]+)"\) or "([^"\\$]*)"\)')

Environment = Mapping[str, str]


def dereferenced(where: str, value: str, environment: Environment) -> str:
    """Returns the value of a referenceable field. Raises KongEnvoyError, or UnsupportedError for other references."""
    if not value.startswith("{vault://"):
        return value
    match = REFERENCE.fullmatch(value)
    if not match:
        raise UnsupportedError(f"{where}: only {{vault://env/name}} is carried over, not {value!r}")
    name = match[1].upper().replace("-", "_")
    if not environment.get(name):
        raise KongEnvoyError(f"{where}: refers to {value}: set the environment variable {name}")
    return environment[name]


def expanded(value: str, environment: Environment) -> str:
    """Returns the value of a template. Raises ValueError for a template of another form."""
    if "$(" not in value:
        return value
    match = TEMPLATE.fullmatch(value)
    if not match:
        raise ValueError('only $(os and os.getenv("NAME") or "literal") is carried over')
    return environment.get(match[1], match[2])
