// A root certificate with a folder of its own, and what it signs.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "@platform/testing/certificates";

/** A folder with a root and the certificates that it signed. */
export interface Authority {
  /** File of the root certificate. */
  readonly ca: string;
  /** Files of a certificate and its key, signed by the root. */
  issue(name: string): [cert: string, key: string];
  read(file: string): string;
  remove(): void;
}

/** Makes a root. */
export function createAuthority(): Authority {
  const folder = mkdtempSync(join(tmpdir(), "http1-tls-"));
  const authority = makeCertificate(folder, "root");
  return {
    ca: authority.cert,
    issue(name) {
      const names = /^[\d.]+$/.test(name) ? `IP:${name}` : `DNS:${name}`;
      const options = { names, subject: `/CN=${name}`, authority };
      const { cert, key } = makeCertificate(folder, name.replaceAll("*", "star"), options);
      return [cert, key];
    },
    read: (file) => readFileSync(file, "utf8"),
    remove() {
      rmSync(folder, { recursive: true });
    },
  };
}
