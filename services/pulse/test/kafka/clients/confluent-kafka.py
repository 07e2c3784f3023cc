"""confluent_kafka (librdkafka) put to work: see clients.test.ts for the arguments."""
import json
import sys
import time

from confluent_kafka import Consumer, Producer, libversion, version

command, servers, *rest = sys.argv[1:]

if command == "version":
    print(f"{version()[0]} (librdkafka {libversion()[0]})")
elif command == "produce":
    topic, compression, count, prefix = rest
    failed = []
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": compression,
            "enable.idempotence": True,
            "linger.ms": 5,
        }
    )
    for number in range(int(count)):
        producer.produce(
            topic,
            key=f"k{number}",
            value=f"{prefix}{number}",
            on_delivery=lambda error, _: failed.append(str(error)) if error else None,
        )
    left = producer.flush(20)
    if failed or left:
        sys.exit(f"not delivered: {failed} {left}")
elif command == "consume":
    topic, group, count = rest
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    values = []
    deadline = time.time() + 30
    while len(values) < int(count) and time.time() < deadline:
        message = consumer.poll(0.5)
        if message is None:
            continue
        if message.error():
            sys.exit(str(message.error()))
        values.append(message.value().decode())
    # One more look: nothing may come twice.
    message = consumer.poll(0.3)
    if message is not None and not message.error():
        values.append(message.value().decode())
    consumer.commit(asynchronous=False)
    consumer.close()
    print(json.dumps(values))
