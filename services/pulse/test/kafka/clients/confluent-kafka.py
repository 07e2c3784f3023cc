"""confluent_kafka (librdkafka) put to work: see clients.test.ts for the arguments."""
import json
import sys
import threading
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
elif command == "stream":
    # Writes numbers until its input ends; says which ones were acknowledged.
    (topic,) = rest
    acknowledged = []
    failed = []
    producer = Producer(
        {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 2, "log_level": 0}
    )
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()

    def note(number):
        def on_delivery(error, _):
            if error:
                failed.append(str(error))
            else:
                acknowledged.append(number)

        return on_delivery

    number = 0
    while not ended.is_set():
        producer.produce(topic, value=str(number), on_delivery=note(number))
        producer.poll(0)
        number += 1
        time.sleep(0.001)
    left = producer.flush(60)
    print(json.dumps({"acknowledged": acknowledged, "failed": failed, "left": left}))
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
