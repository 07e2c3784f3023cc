"""python-kafka put to work: see clients.test.ts for the arguments."""
import json
import sys
import time

from kafka import KafkaConsumer, KafkaProducer, __version__

command, servers, *rest = sys.argv[1:]

if command == "version":
    print(__version__)
elif command == "produce":
    topic, compression, count, prefix = rest
    producer = KafkaProducer(
        bootstrap_servers=servers,
        compression_type=None if compression == "none" else compression,
        acks="all",
        linger_ms=5,
    )
    futures = [
        producer.send(topic, key=f"k{number}".encode(), value=f"{prefix}{number}".encode())
        for number in range(int(count))
    ]
    for future in futures:
        future.get(timeout=20)
    producer.close()
elif command == "consume":
    topic, group, count = rest
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    values = []
    deadline = time.time() + 30
    while len(values) < int(count) and time.time() < deadline:
        for records in consumer.poll(timeout_ms=500).values():
            values.extend(record.value.decode() for record in records)
    for records in consumer.poll(timeout_ms=300).values():
        values.extend(record.value.decode() for record in records)
    consumer.commit()
    consumer.close()
    print(json.dumps(values))
