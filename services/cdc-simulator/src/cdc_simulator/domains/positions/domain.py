"""The domain `positions`: one table of open positions."""

from cdc_simulator.domains.positions.life_cycle import POSITION_LIFE
from cdc_simulator.domains.positions.table import OPEN_POSITIONS
from cdc_simulator.single_table import single_table_domain

DOMAIN = single_table_domain("positions", OPEN_POSITIONS, POSITION_LIFE)
