"""Exercises the broker with python3-stomp: sends, subscribes, acknowledges; prints one line of JSON.

Usage: python-stomp.py PORT VERSION
"""
import json
import queue
import sys

import stomp

port, version = int(sys.argv[1]), sys.argv[2]
classes = {"1.0": stomp.StompConnection10, "1.1": stomp.StompConnection11, "1.2": stomp.StompConnection12}
received = queue.Queue()


class Listener(stomp.ConnectionListener):
    def on_message(self, frame):
        received.put(("message", frame.headers, frame.body))

    def on_receipt(self, frame):
        received.put(("receipt", frame.headers, None))

    def on_error(self, frame):
        received.put(("error", frame.headers, frame.body))


options = {} if version == "1.0" else {"heartbeats": (10000, 10000)}
connection = classes[version]([("127.0.0.1", port)], **options)
connection.set_listener("", Listener())
connection.connect("guest", "guest", wait=True)
topic = "/topic/python-" + version.replace(".", "")
connection.subscribe(topic, id="1", ack="client", headers={"group": "g"})
connection.send(topic, "grüße: 1\n", content_type="text/plain", receipt="sent", headers={"a": "b:c"})
seen = {}
for _ in range(2):
    kind, headers, body = received.get(timeout=20)
    seen[kind] = (headers, body)
headers, body = seen["message"]
if version == "1.2":
    connection.ack(headers["ack"], receipt="acked")
elif version == "1.1":
    connection.ack(headers["message-id"], "1", receipt="acked")
else:
    connection.ack(headers["message-id"])
transaction = connection.begin()
connection.send(topic, "in a transaction", transaction=transaction)
connection.commit(transaction)
second = None
while second is None:
    kind, _, text = received.get(timeout=20)
    second = text if kind == "message" else None
connection.disconnect()
print(json.dumps({"body": body, "a": headers.get("a"), "type": headers.get("content-type"),
                  "receipt": seen["receipt"][0]["receipt-id"], "second": second}))
