"""The domain `invoices`: the stores of a chain, and the invoices of their terminals."""

from cdc_simulator.domain import Domain
from cdc_simulator.domains.invoices.tables import INVOICES, STORES
from cdc_simulator.domains.invoices.workload import initial_rows, next_mutation

DOMAIN = Domain("invoices", (STORES, INVOICES), initial_rows, next_mutation)
