// A certificate chain with its key: reads both files, and checks that a listener can use them together.
import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";

const FILE_BYTES_MAX = 1_048_576;

/** Files of a certificate chain and its key, in PEM. */
export interface CertificateFiles {
  cert: string;
  key: string;
}

/** A certificate chain and its key in PEM. The objects of unchanged files stay the same. */
export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Returns the files that a configuration names, or undefined. Throws if it names only one of them. */
export function pickCertificateFiles(config: {
  tls_cert?: string | undefined;
  tls_key?: string | undefined;
}): CertificateFiles | undefined {
  const { tls_cert: cert, tls_key: key } = config;
  if (cert !== undefined && key !== undefined) return { cert, key };
  if (cert === undefined && key === undefined) return undefined;
  const missing = cert === undefined ? "tls_cert" : "tls_key";
  throw new Error(`${missing} is not set: tls_cert and tls_key must be set together`);
}

/** Reads and checks a pair. Throws an error that names the file and its fault. */
export function readCertificatePair(files: CertificateFiles): CertificatePair {
  const pair = { cert: readFile(files.cert), key: readFile(files.key) };
  checkPair(pair, files);
  return pair;
}

/** Throws if the pair cannot be used, in particular if the key belongs to another certificate. */
export function checkPair(
  { cert, key }: CertificatePair,
  files: CertificateFiles,
): X509Certificate {
  const certificate = parseCertificate(cert, files.cert);
  if (!certificate.checkPrivateKey(parseKey(key, files.key))) {
    throw new Error(`the key in ${files.key} does not belong to the certificate in ${files.cert}`);
  }
  checkUsable({ cert, key }, files.cert);
  return certificate;
}

/**
 * Throws an Error if TLS does not accept a chain with its key, which may parse nevertheless: a key that is too short, or a
 * damaged certificate within the chain. `subject` begins its text, which has no part of the key.
 */
export function checkUsable(
  { cert, key }: { cert: string | Buffer; key: string | Buffer },
  subject: string,
): void {
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    throw new Error(`${subject} cannot be used: ${describe(cause)}`, { cause });
  }
}

/** Throws if a file is too large for PEM. */
export function checkSize(bytes: number): void {
  if (bytes > FILE_BYTES_MAX) throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes`);
}

/** Describes an error of reading a file. */
export function describeReadError(path: string, cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  const reason =
    code === "ENOENT" ? "no such file" : code === "EACCES" ? "permission denied" : describe(cause);
  return `${path} cannot be read: ${reason}`;
}

function readFile(path: string): Buffer {
  try {
    checkSize(statSync(path).size);
    return readFileSync(path);
  } catch (cause) {
    throw new Error(describeReadError(path, cause), { cause });
  }
}

function parseCertificate(pem: Buffer, path: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${path} has no valid certificate in PEM: ${describe(cause)}`, { cause });
  }
}

function parseKey(pem: Buffer, path: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new Error(`${path} has no valid unencrypted private key in PEM`, { cause });
  }
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
