"""Makes the CSV file that the demonstration moves when the user brings none."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROWS_DEFAULT = 300_000
SEED = 20_26

_FIRST = ("Ada", "Björn", "Chloé", "Dmitri", "Elif", "Farah", "Goro", "Hannah", "Iñigo", "Jun")
_LAST = ("Almeida", "Berg", "Çelik", "Duarte", "Eriksen", "Fischer", "Grønn", "Haddad", "Ito", "Jansen")
_CITIES = ("Aarhus", "Bern", "Córdoba", "Delft", "Espoo", "Fès", "Gdańsk", "Hà Nội", "Izmir", "Kyoto")
_PRODUCTS = ('Lamp "Orbit", small', "Desk, oak", "Chair", "Notebook, A5", "Kettle", "Rug 140x200", "Shelf", "Mug")


def write_orders(path: Path, rows: int = ROWS_DEFAULT, seed: int = SEED) -> None:
    """Writes made-up orders, the same ones for the same seed; about 90 bytes each.

    Args:
        path: File to write.
        rows: How many.
        seed: Chooses the orders.
    """
    chance = random.Random(seed)  # noqa: S311  made-up orders need no secrets
    began = datetime(2026, 1, 1, tzinfo=UTC)
    products = ['"' + name.replace('"', '""') + '"' for name in _PRODUCTS]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("order_id,ordered_at,customer,city,product,quantity,unit_price,paid\n")
        for number in range(1, rows + 1):
            at = began + timedelta(seconds=number * 7)
            file.write(
                f"{number},{at:%Y-%m-%dT%H:%M:%SZ},{chance.choice(_FIRST)} {chance.choice(_LAST)},"
                f"{chance.choice(_CITIES)},{chance.choice(products)},{chance.randint(1, 9)},"
                f"{chance.randint(100, 99_999) / 100},{chance.choice(('true', 'false'))}\n"
            )
