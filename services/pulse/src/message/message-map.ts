// The map of a message's properties to each protocol. This table is the definition; the README shows it.

/** Record headers in which all protocols keep a property that they share. */
export const SHARED_HEADERS = {
  contentType: "content-type",
  replyTo: "reply-to",
  correlationId: "correlation-id",
} as const;

/** A property of messages, and where it is found in each protocol. */
export interface MappedProperty {
  property: string;
  /** HTTP, server-sent events and WebSocket. */
  http: string;
  kafka: string;
  mqtt: string;
  stomp: string;
}

/** The map. `—`: the protocol does not show the property; it stays with the message for the others. */
export const MESSAGE_MAP: readonly MappedProperty[] = [
  {
    property: "topic",
    http: "`orders.eu`, letters of any script",
    kafka:
      "the same; bytes other than `a-z A-Z 0-9 . _ -` are written as `_xHH`, which is reversible",
    mqtt: "`orders/eu`; characters that the broker's names may not hold are `_xHH` in them, which is reversible: `v1.2` is `v1_x2E2`",
    stomp:
      "`/topic/orders.eu` or `orders.eu`, letters of any script; `/queue/orders.eu` shares it among its subscribers",
  },
  {
    property: "payload",
    http: "text; bytes as base64 with `encoding`",
    kafka: "the value",
    mqtt: "the payload",
    stomp: "the body",
  },
  {
    property: "key",
    http: "`key`",
    kafka: "the key",
    mqtt: "user property `platform-key`, a key that is not text in base64",
    stomp: "header `platform-key`, a key that is not text in base64",
  },
  {
    property: "headers",
    http: "`headers`: text, bytes as base64; of several with one name the last",
    kafka: "record headers",
    mqtt: "user properties; bytes as base64, a header without a value as an empty text",
    stomp:
      "headers; bytes and text with NUL as base64, a header without a value as an empty text; of several with one name the first counts. Headers with names of the frame's own are left out, in 1.0 also those with line feeds or with colons in the name",
  },
  {
    property: "content type",
    http: "header `content-type`",
    kafka: "header `content-type`",
    mqtt: "content type",
    stomp: "header `content-type`",
  },
  {
    property: "reply address",
    http: "header `reply-to`",
    kafka: "header `reply-to`",
    mqtt: "response topic",
    stomp: "header `reply-to`",
  },
  {
    property: "correlation",
    http: "header `correlation-id`",
    kafka: "header `correlation-id`",
    mqtt: "correlation data",
    stomp: "header `correlation-id`",
  },
  {
    property: "trace context",
    http: "headers `traceparent`, `tracestate`",
    kafka: "the same headers",
    mqtt: "user properties of these names",
    stomp: "the same headers",
  },
  {
    property: "id",
    http: "`message_id`, set or generated",
    kafka: "header `platform-message-id`; records without one are `<partition>:<offset>`",
    mqtt: "set by the user property `platform-message-id`, which removes duplicates; not shown",
    stomp: "header `message-id`; set by `platform-message-id`, which removes duplicates",
  },
  {
    property: "priority",
    http: "`priority`; of the waiting messages, the highest is sent first",
    kafka: "header `platform-priority`; consumers read by offset",
    mqtt: "set by the user property `platform-priority`; sent as over HTTP, not shown",
    stomp: "header `priority`; sent as over HTTP",
  },
  {
    property: "expiry",
    http: "set by `ttl_ms`",
    kafka: "header `platform-expires-at`, epoch ms",
    mqtt: "message expiry interval, whole seconds",
    stomp: "header `expires`, epoch ms; set by it or by `ttl`, ms",
  },
  {
    property: "delay",
    http: "set by `delay_ms`",
    kafka: "seen when due",
    mqtt: "set by the user property `platform-delay-ms`",
    stomp: "set by the header `delay`, ms",
  },
  {
    property: "time",
    http: "`timestamp`: published, for delayed messages delivered",
    kafka: "the record's timestamp",
    mqtt: "—",
    stomp: "header `timestamp`, epoch ms",
  },
  {
    property: "retries",
    http: "`retry_count`",
    kafka: "header `platform-retry-count`",
    mqtt: "—",
    stomp: "header `platform-retry-count`, with `redelivered:true`",
  },
  {
    property: "partition, offset",
    http: "`partition`, `offset`",
    kafka: "the same",
    mqtt: "—",
    stomp: "—",
  },
  {
    property: "QoS, retain, format",
    http: "—",
    kafka: "header `platform-mqtt`",
    mqtt: "the flags, and the payload format indicator; messages of other protocols have QoS 2",
    stomp: "—",
  },
];
