// The certificate of STARTTLS.
import type { Service } from "@platform/chassis";
import { CertificateWatch, collectExpiry } from "@platform/kernel/tls";
import type { NotifyConfig } from "./config.ts";

/** Reads the certificate; by default it is that of the HTTP listener. Throws if it is invalid. */
export function pickSmtpCertificates(
  config: NotifyConfig,
  { certificates, metrics, log }: Service,
): CertificateWatch | undefined {
  const { inbound_tls_cert: cert, inbound_tls_key: key, inbound_tls_awaited: isAwaited } = config;
  if (cert !== undefined && key !== undefined) {
    const watch = new CertificateWatch({ pairs: [{ cert, key }], isAwaited, log });
    collectExpiry(metrics, "STARTTLS", () => watch);
    return watch;
  }
  if (cert === undefined && key === undefined) return certificates;
  const missing = cert === undefined ? "inbound_tls_cert" : "inbound_tls_key";
  throw new Error(`${missing} is not set: STARTTLS requires inbound_tls_cert and inbound_tls_key`);
}
