// The listeners of the wire protocols.
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { CertificatePair } from "@platform/kernel/tls";
import type { PulseConfig } from "./config.ts";
import type { WireListener } from "./connection/listeners.ts";
import type { KafkaServer } from "./kafka/index.ts";
import type { MqttServer } from "./mqtt/index.ts";
import type { StompServer } from "./stomp/index.ts";

/**
 * Listens for the clients of wire protocols; returns the listeners with TLS. Rejects with an explanation if an address is
 * in use.
 */
export async function listenForWires(
  { kafka, mqtt, stomp }: { kafka: KafkaServer; mqtt: MqttServer; stomp: StompServer },
  { kafka_addr, kafka_tls_addr, mqtt_addr, mqtt_tls_addr, stomp_addr }: PulseConfig,
  tls: CertificatePair | undefined,
  lifecycle: Lifecycle,
): Promise<WireListener[]> {
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
  return withTls;
}
