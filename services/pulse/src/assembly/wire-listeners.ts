// The listeners of the wire protocols.
import type { Service } from "@platform/chassis";
import { explainListenError } from "@platform/kernel/lifecycle";
import type { PulseConfig } from "../config.ts";
import type { WireListener } from "../connection/listeners.ts";
import type { Wires } from "./wires.ts";

/** Throws if a listener with TLS is configured without a certificate. */
export function checkTlsListeners(config: PulseConfig, { certificates }: Service): void {
  for (const key of ["kafka_tls_addr", "mqtt_tls_addr"] as const) {
    if (config[key] === undefined || certificates !== undefined) continue;
    throw new Error(`${key} needs tls_cert and tls_key`);
  }
}

/** Listens for the clients of wire protocols. Rejects with an explanation if an address is in use. */
export async function listenForWires(
  { kafka_addr, kafka_tls_addr, mqtt_addr, mqtt_tls_addr, stomp_addr }: PulseConfig,
  { certificates, lifecycle }: Service,
  { kafka, mqtt, stomp }: Wires,
): Promise<void> {
  const tls = certificates?.current.pairs[0];
  const withTls: WireListener[] = [];
  const listeners = [
    { name: "kafka", server: kafka, address: kafka_addr, tls: undefined },
    { name: "kafka-tls", server: kafka, address: kafka_tls_addr, tls },
    { name: "mqtt", server: mqtt, address: mqtt_addr, tls: undefined },
    { name: "mqtt-tls", server: mqtt, address: mqtt_tls_addr, tls },
    { name: "stomp", server: stomp, address: stomp_addr, tls },
  ];
  for (const { name, server, address, tls: secured } of listeners) {
    if (address === undefined) continue;
    const flag = `--${name}-addr`;
    const variable = `PLATFORM_PULSE_${name.replace("-", "_").toUpperCase()}_ADDR`;
    const listening = server.listen(address, secured).catch(async (error: unknown) => {
      throw await explainListenError(error, address, `${flag} or ${variable}`);
    });
    const listener = await listening;
    if (secured !== undefined) withTls.push(listener);
    lifecycle.reportListener({ name, host: listener.host, port: listener.port });
  }
  certificates?.follow(lifecycle, ({ pairs: [pair] }) => {
    for (const one of withTls) one.setTls(pair!);
  });
}
