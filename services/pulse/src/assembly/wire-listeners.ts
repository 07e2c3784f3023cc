// The listeners of the wire protocols.
import type { Service } from "@platform/chassis";
import { explainListenError } from "@platform/kernel/lifecycle";
import { CertificateWatch, collectExpiry } from "@platform/kernel/tls";
import type { PulseConfig } from "../config.ts";
import type { WireListener } from "../connection/listeners.ts";
import type { Wires } from "./wires.ts";

/**
 * Opens the certificates of the listeners with TLS: their own, or those of the service. Throws if they are invalid, or if a
 * listener with TLS is configured without a certificate.
 */
export function openWireCertificates(
  config: PulseConfig,
  { certificates, metrics, log }: Service,
): CertificateWatch | undefined {
  const { wire_tls_cert: cert, wire_tls_key: key, wire_tls_awaited: isAwaited } = config;
  if ((cert === undefined) !== (key === undefined)) {
    const missing = cert === undefined ? "wire_tls_cert" : "wire_tls_key";
    throw new Error(`${missing} is not set: wire_tls_cert and wire_tls_key must be set together`);
  }
  if (cert !== undefined && key !== undefined) {
    const watch = new CertificateWatch({ pairs: [{ cert, key }], isAwaited, log });
    collectExpiry(metrics, "wire protocols", () => watch);
    return watch;
  }
  for (const name of ["kafka_tls_addr", "mqtt_tls_addr", "stomp_tls_addr"] as const) {
    if (config[name] === undefined || certificates !== undefined) continue;
    throw new Error(`${name} needs tls_cert and tls_key, or wire_tls_cert and wire_tls_key`);
  }
  return certificates;
}

/** Listens for the clients of wire protocols. Rejects with an explanation if an address is in use. */
export async function listenForWires(
  config: PulseConfig,
  { certificates, lifecycle }: Service,
  { kafka, mqtt, stomp }: Wires,
  wireCertificates: CertificateWatch | undefined,
): Promise<void> {
  const own = certificates?.current.pairs[0];
  // Without a certificate yet, handshakes fail.
  const tls = wireCertificates && (wireCertificates.current.pairs[0] ?? {});
  const withTls: WireListener[] = [];
  const ofService: WireListener[] = [];
  const listeners = [
    { name: "kafka", server: kafka, address: config.kafka_addr, tls: undefined },
    { name: "kafka-tls", server: kafka, address: config.kafka_tls_addr, tls },
    { name: "mqtt", server: mqtt, address: config.mqtt_addr, tls: undefined },
    { name: "mqtt-tls", server: mqtt, address: config.mqtt_tls_addr, tls },
    { name: "stomp", server: stomp, address: config.stomp_addr, tls: own },
    { name: "stomp-tls", server: stomp, address: config.stomp_tls_addr, tls },
  ];
  for (const { name, server, address, tls: secured } of listeners) {
    if (address === undefined) continue;
    const flag = `--${name}-addr`;
    const variable = `PLATFORM_PULSE_${name.replace("-", "_").toUpperCase()}_ADDR`;
    const listening = server.listen(address, secured).catch(async (error: unknown) => {
      throw await explainListenError(error, address, `${flag} or ${variable}`);
    });
    const listener = await listening;
    if (secured !== undefined) (name === "stomp" ? ofService : withTls).push(listener);
    lifecycle.reportListener({ name, host: listener.host, port: listener.port });
  }
  follow(certificates, ofService, lifecycle);
  follow(wireCertificates, withTls, lifecycle);
}

function follow(
  watch: CertificateWatch | undefined,
  listeners: readonly WireListener[],
  lifecycle: Service["lifecycle"],
): void {
  if (listeners.length === 0) return;
  watch?.follow(lifecycle, ({ pairs: [pair] }) => {
    if (pair === undefined) return;
    for (const one of listeners) one.setTls(pair);
  });
}
