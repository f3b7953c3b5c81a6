"""The domain `orders`: one table of orders."""

from cdc_simulator.domains.orders.life_cycle import ORDER_LIFE
from cdc_simulator.domains.orders.table import ORDERS
from cdc_simulator.single_table import single_table_domain

DOMAIN = single_table_domain("orders", ORDERS, ORDER_LIFE)
