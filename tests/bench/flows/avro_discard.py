"""Avro with a schema registry to nowhere, beside Kafka Connect with Apicurio's converter and beside Python code.

The third is what an application would do without an engine: decode each record by fastavro, a process per partition.
"""

from __future__ import annotations

import dataclasses

from tests.bench import avro, load
from tests.bench.connect_plugins import AVRO_CONVERTER
from tests.bench.figures import CONNECT, WHERRY, Figure
from tests.bench.flows import contents, discard
from tests.bench.flows.flow import Outcome
from tests.bench.site import Site
from tests.bench.systems import Connector

KIND = "avro"
DECODED_RECORDS = 400_000
"""So many are decoded one by one in Python: enough for a rate."""

FIGURES = (
    *discard.figures(speed=1.0),
    Figure("decoder_ratio", "the system ÷ fastavro record by record, 2 processes", "ratio", 2, value_min=3.0),
    Figure("decoder_records_per_second", "fastavro record by record, 2 processes", "1/s", 0, compared=False),
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Consumes the whole topic."""
    config = converter(site, name)
    contents.check(site, name, config, topic_of(site, contents.RECORDS))
    topic = topic_of(site, records)
    connector = Connector(
        f"discard-{label}",
        {**discard.NOTHING[name], **config, "tasks.max": str(discard.TASKS), "topics": topic},
    )
    outcome = discard.consume(site, site.running(name), connector, records)
    decoded = python_decoder(site)
    outcome.figures["decoder_records_per_second"] = decoded
    outcome.figures["decoder_ratio"] = outcome.figures["records_per_second"] / decoded
    return outcome


def topic_of(site: Site, records: int) -> str:
    """A topic of records in Avro, whose schema is in the registry under the topic's name."""
    return site.topic_of_records(
        records, kind=KIND, making=lambda topic: avro.encoder(avro.register(site.registry.url, topic))
    )


def converter(site: Site, name: str) -> dict[str, str]:
    """The converter of each system; both read what a Confluent producer writes."""
    if name == WHERRY:
        return {
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": site.registry.url,
        }
    assert name == CONNECT
    return {
        "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
        "value.converter.apicurio.registry.url": site.registry.url.replace("/ccompat/v7", "/registry/v2"),
        "value.converter.apicurio.registry.as-confluent": "true",
        "value.converter.apicurio.registry.use-id": "contentId",
    }


def python_decoder(site: Site) -> float:
    """The records per second of the Python decoder, measured once."""
    if KIND not in site.notes:
        topic = topic_of(site, DECODED_RECORDS)
        site.notes[KIND] = avro.decode_in_python(site.bootstrap, topic, load.PARTITIONS, DECODED_RECORDS)
    found = site.notes[KIND]
    assert isinstance(found, float)
    return found


FLOW = dataclasses.replace(
    discard.PLAIN,
    name="avro-discard",
    summary="the same records in Avro, schema in a registry; Kafka Connect with Apicurio's converter",
    figures=FIGURES,
    records=6_000_000,
    warm_up_records=6_000_000,
    run_once=run_once,
    plugins=(AVRO_CONVERTER,),
)
