"""Publishes and receives with paho-mqtt: paho-client.py PORT PROTOCOL QOS COUNT; prints the received payloads as JSON."""
import json
import sys
import threading

import paho.mqtt.client as mqtt

if sys.argv[1] == "version":
    import paho.mqtt

    print(paho.mqtt.__version__)
    sys.exit()
port, protocol, qos, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
version = mqtt.MQTTv5 if protocol == "5" else mqtt.MQTTv311
topic = f"paho/{protocol}/{qos}"
received = []
subscribed = threading.Event()
done = threading.Event()
client = mqtt.Client(client_id=f"paho-{protocol}-{qos}", protocol=version)
client.on_connect = lambda *_: client.subscribe(topic + "/#", qos)
client.on_subscribe = lambda *_: subscribed.set()


def on_message(_client, _userdata, message):
    received.append([message.topic, message.payload.decode(), message.qos])
    if len(received) == count:
        done.set()


client.on_message = on_message
client.connect("127.0.0.1", port)
client.loop_start()
assert subscribed.wait(20)
for index in range(count):
    client.publish(f"{topic}/{index}", f"message {index}", qos)
assert done.wait(30)
client.disconnect()
client.loop_stop()
print(json.dumps(received))
