// The TLS certificate of both listeners, reloaded when its files change.
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Logger } from "@platform/kernel/log";
import { every } from "@platform/kernel/time";

/** A certificate chain and its key in PEM. */
export interface Certificate {
  cert: Buffer;
  key: Buffer;
}

/** The files of a certificate. */
export interface CertificateFiles {
  cert: string;
  key: string;
}

const LOOK_EVERY_MS = 2_000;

/** Reads a certificate. Throws if it is invalid. */
export function readCertificate(files: CertificateFiles): Certificate {
  const certificate = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
  createSecureContext(certificate);
  return certificate;
}

/**
 * Checks the files every two seconds and passes a new certificate to `apply`. An invalid one is warned about once, and the
 * previous one stays: while a renewal replaces both files, they do not match. Returns a function that stops the checks.
 */
export function watchCertificate(
  files: CertificateFiles,
  first: Certificate,
  apply: (certificate: Certificate) => void,
  log: Logger,
): () => void {
  let current = first;
  let warned = "";
  const check = (): void => {
    const found = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
    if (found.cert.equals(current.cert) && found.key.equals(current.key)) return;
    createSecureContext(found);
    apply(found);
    current = found;
    warned = "";
    log.info("the certificate was replaced", { path: files.cert });
  };
  const warn = (error: unknown): void => {
    const reason = error instanceof Error ? error.message : String(error);
    if (reason !== warned) {
      log.warn("the new certificate is invalid", { path: files.cert, reason });
    }
    warned = reason;
  };
  const timer = every(LOOK_EVERY_MS, check, warn);
  return () => void timer.stop();
}
