// The certificates of the HTTP listener and of STARTTLS.
import type { Logger } from "@platform/kernel/log";
import { CertificateWatch, pickCertificateFiles } from "@platform/kernel/tls";
import type { NotifyConfig } from "./config.ts";

/** Reads the certificates; that of STARTTLS is by default that of the HTTP listener. Throws if one is invalid. */
export function openCertificates(config: NotifyConfig, log: Logger) {
  const { inbound_tls_cert: cert, inbound_tls_key: key } = config;
  if ((cert === undefined) !== (key === undefined)) {
    const missing = cert === undefined ? "inbound_tls_cert" : "inbound_tls_key";
    throw new Error(
      `${missing} is not set: STARTTLS requires inbound_tls_cert and inbound_tls_key`,
    );
  }
  const files = pickCertificateFiles(config);
  const http = files && new CertificateWatch({ pairs: [files], log });
  const own = cert !== undefined && key !== undefined ? { cert, key } : undefined;
  const smtp = own === undefined ? http : new CertificateWatch({ pairs: [own], log });
  return { http, smtp };
}
