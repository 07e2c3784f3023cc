// The broker's entry.
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { formatLocalHost, formatUrl, getAddress } from "./entry.ts";
import type { ServiceEntry } from "./entry.ts";

const TOKEN = "PLATFORM_PULSE_TOKEN";

/** The message broker. */
export const pulseEntry: ServiceEntry = {
  name: "pulse",
  label: "messages",
  main: import.meta.resolve("@platform/pulse/main"),
  listeners: [
    {
      name: "http",
      key: "pulse_addr",
      env: "PLATFORM_PULSE_HTTP_ADDR",
      default: "127.0.0.1:8082",
      description: "Where the broker's HTTP, SSE and WebSocket face listens.",
    },
    {
      name: "kafka",
      key: "pulse_kafka_addr",
      env: "PLATFORM_PULSE_KAFKA_ADDR",
      default: "127.0.0.1:9092",
      description: "Where Kafka clients connect to the broker.",
    },
  ],
  credentials: [TOKEN],
  // Callers show the broker its own token, or a user's.
  routes: [{ prefix: "/pulse", stripPrefix: true, open: true, listener: "http" }],
  configure: (context) => ({
    args: [],
    env: {
      PLATFORM_PULSE_HTTP_ADDR: formatAddress(getAddress(context, "pulse_addr")),
      PLATFORM_PULSE_KAFKA_ADDR: formatAddress(getAddress(context, "pulse_kafka_addr")),
      PLATFORM_PULSE_DATA_DIR: join(context.dataDir, "pulse"),
      [TOKEN]: context.credentials[TOKEN] ?? "",
    },
  }),
  describe: (context) =>
    `Kafka ${formatLocalHost(getAddress(context, "pulse_kafka_addr"))} · behind the gateway at /pulse · docs ${formatUrl(getAddress(context, "pulse_addr"))}/api/docs`,
  trials(context) {
    const gate = context.addresses.get("gate_addr");
    const isBehindGate = gate !== undefined && context.running.some(({ name }) => name === "gate");
    const host = formatLocalHost(isBehindGate ? gate : getAddress(context, "pulse_addr"));
    const source = `${context.dataDirShown}/credentials.env`;
    const path = isBehindGate ? "/pulse/api/v1" : "/api/v1";
    return [
      {
        command: `(. ${source}; curl -N -H "Authorization: Bearer $${TOKEN}" ${host}${path}/subscribe/orders)`,
        meaning: "what is published in orders",
      },
      {
        command: `echo hello | kcat -P -b ${formatLocalHost(getAddress(context, "pulse_kafka_addr"))} -t orders`,
        meaning: "published by a Kafka client",
      },
    ];
  },
};
