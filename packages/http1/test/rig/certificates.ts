// Certificates for tests, made with the openssl program in a folder of their own.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Whether openssl is there; required under PLATFORM_TEST_PEERS=required. */
export const withoutOpenssl: string | false = findOpenssl();

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
  const path = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): void => {
    execFileSync("openssl", args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  };
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  openssl(
    "req",
    "-x509",
    ...ec,
    "-days",
    "2",
    "-subj",
    "/CN=root",
    "-keyout",
    "ca.key",
    "-out",
    "ca.pem",
  );
  return {
    ca: path("ca.pem"),
    issue(name) {
      const file = name.replaceAll("*", "star");
      const alternative = /^[\d.]+$/.test(name) ? `IP:${name}` : `DNS:${name}`;
      writeFileSync(path(`${file}.ext`), `subjectAltName=${alternative}\n`);
      openssl(
        "req",
        ...ec,
        "-subj",
        `/CN=${name}`,
        "-keyout",
        `${file}.key`,
        "-out",
        `${file}.csr`,
      );
      openssl(
        "x509",
        "-req",
        "-in",
        `${file}.csr`,
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        `${file}.ext`,
        "-out",
        `${file}.pem`,
      );
      return [path(`${file}.pem`), path(`${file}.key`)];
    },
    read: (file) => readFileSync(file, "utf8"),
    remove() {
      rmSync(folder, { recursive: true });
    },
  };
}

function findOpenssl(): string | false {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return false;
  } catch {
    if (process.env["PLATFORM_TEST_PEERS"] === "required") {
      throw new Error("These tests need the Debian package openssl");
    }
    return "the Debian package openssl is not installed";
  }
}
