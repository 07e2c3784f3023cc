// The listeners of the wire protocols, and the certificate of those with TLS.
import { readFileSync } from "node:fs";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { PulseConfig } from "./config.ts";
import type { KafkaServer } from "./kafka/index.ts";
import type { MqttServer } from "./mqtt/index.ts";
import type { StompServer } from "./stomp/index.ts";

/** A certificate and its key. */
export interface Tls {
  cert: Buffer;
  key: Buffer;
}

/** Reads the certificate of all listeners with TLS; undefined if there is none. Throws if only a part is configured. */
export function readTls(config: PulseConfig): Tls | undefined {
  const { tls_cert_file, tls_key_file } = config;
  if (tls_cert_file === undefined && tls_key_file === undefined) return undefined;
  if (tls_cert_file === undefined || tls_key_file === undefined) {
    throw new Error("tls_cert_file and tls_key_file must be set together");
  }
  return { cert: readFileSync(tls_cert_file), key: readFileSync(tls_key_file) };
}

/** Listens for the clients of wire protocols. Rejects with an explanation if an address is in use. */
export async function listenForWires(
  { kafka, mqtt, stomp }: { kafka: KafkaServer; mqtt: MqttServer; stomp: StompServer },
  { kafka_addr, kafka_tls_addr, mqtt_addr, mqtt_tls_addr, stomp_addr }: PulseConfig,
  tls: Tls | undefined,
  lifecycle: Lifecycle,
): Promise<void> {
  const listeners = [
    { name: "kafka", server: kafka, address: kafka_addr, tls: undefined },
    { name: "kafka-tls", server: kafka, address: kafka_tls_addr, tls },
    { name: "mqtt", server: mqtt, address: mqtt_addr, tls: undefined },
    { name: "mqtt-tls", server: mqtt, address: mqtt_tls_addr, tls },
    { name: "stomp", server: stomp, address: stomp_addr, tls },
  ];
  for (const { name, server, address, tls: secured } of listeners) {
    if (address === undefined) continue;
    const { host = "0.0.0.0", port } = address;
    const flag = `--${name}-addr`;
    const variable = `PLATFORM_PULSE_${name.replace("-", "_").toUpperCase()}_ADDR`;
    const listening = server.listen({ host, port }, secured).catch(async (error: unknown) => {
      throw await explainListenError(error, address, `${flag} or ${variable}`);
    });
    lifecycle.reportListener({ name, host, port: (await listening).port });
  }
}
