// The certificate of both listeners, read from its files again when they change.
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Logger } from "@platform/kernel/log";

/** A chain and its key in PEM. */
export interface Certificate {
  cert: Buffer;
  key: Buffer;
}

/** Where a certificate is. */
export interface CertificateFiles {
  cert: string;
  key: string;
}

const LOOK_EVERY_MS = 10_000;

/** Reads a certificate; throws where it does not load. */
export function readCertificate(files: CertificateFiles): Certificate {
  const certificate = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
  createSecureContext(certificate);
  return certificate;
}

/**
 * Looks at the files every ten seconds and hands a new certificate to `apply`. One that does not load is warned about once,
 * and the one before stays: while a renewal replaces both files, they do not fit each other. Returns how to stop.
 */
export function watchCertificate(
  files: CertificateFiles,
  first: Certificate,
  apply: (certificate: Certificate) => void,
  log: Logger,
  everyMs = LOOK_EVERY_MS,
): () => void {
  let current = first;
  let warned = "";
  const look = (): void => {
    try {
      const found = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
      if (found.cert.equals(current.cert) && found.key.equals(current.key)) return;
      createSecureContext(found);
      apply(found);
      current = found;
      warned = "";
      log.info("the certificate was replaced", { path: files.cert });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== warned)
        log.warn("a new certificate does not load", { path: files.cert, reason });
      warned = reason;
    }
  };
  const timer = setInterval(look, everyMs).unref();
  return () => clearInterval(timer);
}
