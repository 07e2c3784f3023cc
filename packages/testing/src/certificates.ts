// Certificates of tests, made with the openssl program.
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";

/** Reason to skip a test that needs openssl; false if it runs. */
export const opensslSkip: string | false =
  hasOpenssl || isRequired ? false : "openssl is not installed (Debian: openssl)";

/** Paths of a certificate and of its private key, in PEM. */
export interface CertificateFiles {
  cert: string;
  key: string;
}

/** Properties of a certificate. */
export interface CertificateOptions {
  /** Alternative names, as `DNS:localhost,IP:127.0.0.1`. Default: none. */
  names?: string;
  /** Subject, as openssl writes it. Default: `/CN=` and the name of the files. */
  subject?: string;
  /** Days that it is valid from now. Default: 2. */
  days?: number;
  /** Signs it. Default: it signs itself, and may sign others. */
  authority?: CertificateFiles;
}

/** Makes `NAME.crt` and `NAME.key` in a folder, in the place of earlier ones; throws what openssl says. */
export function makeCertificate(
  folder: string,
  name: string,
  { names, subject = `/CN=${name}`, days = 2, authority }: CertificateOptions = {},
): CertificateFiles {
  const path = (end: string): string => join(folder, `${name}.${end}`);
  const made: CertificateFiles = { cert: path("crt"), key: path("key") };
  const asked = ["req", ...NEW_KEY, "-subj", subject, "-keyout", made.key];
  const lasts = ["-days", String(days), "-out", made.cert];
  if (authority === undefined) {
    const extension = names === undefined ? [] : ["-addext", `subjectAltName=${names}`];
    runOpenssl([...asked, "-x509", ...extension, ...lasts]);
    return made;
  }
  runOpenssl([...asked, "-out", path("csr")]);
  writeFileSync(path("ext"), names === undefined ? "" : `subjectAltName=${names}\n`);
  const signs = ["-CA", authority.cert, "-CAkey", authority.key, "-CAcreateserial"];
  runOpenssl(["x509", "-req", "-in", path("csr"), ...signs, "-extfile", path("ext"), ...lasts]);
  return made;
}

function runOpenssl(args: readonly string[]): void {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
}
