// Certificates of the gateway's listener, as the workers use them.

/** Origin of a certificate: files of the configuration, an ACME directory, or the secret service. */
export type CertificateSource = "file" | "acme" | "secret";

/** A certificate chain of the gateway with its key. */
export interface TlsContextSpec {
  source: CertificateSource;
  /** Lower-case DNS names that it is used for; `*.` stands for one label. No other context has them. */
  names: string[];
  certPem: string;
  keyPem: string;
  /** Path of the certificate; for other sources, its place there. */
  file: string;
}

/** Keys of TLS session tickets of all threads, 48 bytes each. */
export interface TicketKeySpec {
  /** They encrypt new tickets. */
  current: Uint8Array;
  /** Tickets of these are accepted, too; undefined if there are none. */
  previous: Uint8Array | undefined;
}

/** TLS of the listener. */
export interface TlsSpec {
  /** For unknown names, and for clients that send no name; without it they are refused. */
  fallback?: TlsContextSpec;
  contexts: readonly TlsContextSpec[];
  /** Certificates of clients that are signed by `caPem`; absent: they are not requested. */
  clientCertificates?: { mode: "request" | "require"; caPem: string };
  /** True if the control plane is told the names of handshakes that no certificate fits. */
  reportsUnknown?: boolean;
  /** Certificates of TLS-ALPN-01 challenges by name (RFC 8737); absent without automatic certificates. */
  challenges?: Readonly<Record<string, { certPem: string; keyPem: string }>>;
}
