"""The domain `odds`: matches, and the markets on which they can be bet."""

from cdc_simulator.domain import Domain
from cdc_simulator.domains.odds.tables import MARKETS, MATCHES
from cdc_simulator.domains.odds.workload import initial_rows, next_mutation

DOMAIN = Domain("odds", (MATCHES, MARKETS), initial_rows, next_mutation)
