// Table entry of messaging.
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { allowBackups, BACKUP_TOKEN } from "./backup.ts";
import { formatLocalHost, formatUrl, getAddress, isRunning, type ServiceEntry } from "./entry.ts";
import { describeGateway } from "./gate.ts";
import { secureMessaging } from "./certificates.ts";
import { chooseTenant, REVOCATIONS_TOKEN, wireIdentity } from "./identity.ts";
import { wireOffload } from "./offload.ts";

/** Operator's token of messaging. */
export const PULSE_TOKEN = "PLATFORM_PULSE_TOKEN";

/** Messaging. */
export const pulseEntry: ServiceEntry = {
  name: "pulse",
  label: "messaging",
  main: import.meta.resolve("@platform/pulse/main"),
  listeners: [
    {
      name: "http",
      key: "messaging_addr",
      env: "PLATFORM_PULSE_HTTP_ADDR",
      default: "127.0.0.1:8082",
      description: "Listening address of messaging for HTTP, SSE and WebSocket.",
    },
    {
      name: "kafka",
      key: "messaging_kafka_addr",
      env: "PLATFORM_PULSE_KAFKA_ADDR",
      default: "127.0.0.1:9092",
      description: "Listening address of messaging for Kafka clients.",
    },
    {
      name: "mqtt",
      key: "messaging_mqtt_addr",
      env: "PLATFORM_PULSE_MQTT_ADDR",
      default: "127.0.0.1:1883",
      description: "Listening address of messaging for MQTT clients.",
    },
    {
      name: "stomp",
      key: "messaging_stomp_addr",
      env: "PLATFORM_PULSE_STOMP_ADDR",
      default: "127.0.0.1:61613",
      description: "Listening address of messaging for STOMP clients.",
    },
  ],
  probes: "http",
  after: ["auth"],
  backup: { listener: "http" },
  credentials: [PULSE_TOKEN, BACKUP_TOKEN],
  uses: [REVOCATIONS_TOKEN],
  // Messaging authenticates callers itself: by its token or a user's.
  routes: [{ prefix: "/pulse", stripPrefix: true, open: true, listener: "http" }],
  configure: (context) => ({
    args: [],
    env: {
      PLATFORM_PULSE_HTTP_ADDR: formatAddress(getAddress(context, "messaging_addr")),
      PLATFORM_PULSE_KAFKA_ADDR: formatAddress(getAddress(context, "messaging_kafka_addr")),
      PLATFORM_PULSE_MQTT_ADDR: formatAddress(getAddress(context, "messaging_mqtt_addr")),
      PLATFORM_PULSE_STOMP_ADDR: formatAddress(getAddress(context, "messaging_stomp_addr")),
      PLATFORM_PULSE_DATA_DIR: join(context.dataDir, "pulse"),
      ...allowBackups(context),
      [PULSE_TOKEN]: context.credentials[PULSE_TOKEN] ?? "",
      ...wireIdentity("pulse", context, process.env),
      ...wireOffload(context, process.env),
      ...secureMessaging(context, process.env),
    },
  }),
  describe: (context) =>
    `Kafka ${formatLocalHost(getAddress(context, "messaging_kafka_addr"))} · MQTT ${formatLocalHost(getAddress(context, "messaging_mqtt_addr"))} · STOMP ${formatLocalHost(getAddress(context, "messaging_stomp_addr"))} · behind the gateway at /pulse · docs ${formatUrl(getAddress(context, "messaging_addr"))}/api/docs`,
  trials(context) {
    const isBehindGate = isRunning("gate", context);
    const { flag, url } = isBehindGate
      ? describeGateway(context)
      : { flag: "", url: formatLocalHost(getAddress(context, "messaging_addr")) };
    const source = context.credentialsShown;
    const path = isBehindGate ? "/pulse/api/v1" : "/api/v1";
    // Without a tenant the operator's topics are its own: applications would not see them.
    const tenant = chooseTenant(process.env);
    const kafka = formatLocalHost(getAddress(context, "messaging_kafka_addr"));
    const sasl = `-X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=operator@${tenant} -X sasl.password=$${PULSE_TOKEN}`;
    return [
      {
        command: `(. ${source}; curl -N -H "Authorization: Bearer $${PULSE_TOKEN}" ${flag}"${url}${path}/subscribe/orders?tenant=${tenant}")`,
        meaning: "subscribe to the topic orders of applications",
      },
      {
        command: `(. ${source}; echo hello | kcat -P -b ${kafka} -t orders ${sasl})`,
        meaning: "publish to it with a Kafka client",
      },
    ];
  },
};
