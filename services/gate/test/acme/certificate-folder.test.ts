// Files of certificates for other programs.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { CertificateWatch } from "@platform/kernel/tls";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { CertificateFolder } from "../../src/acme/certificate-folder.ts";

test(
  "chain and key are one file, which is written again after a fault",
  { skip },
  async (context) => {
    const base = mkdtempSync(join(tmpdir(), "certificate-folder-"));
    context.after(() => rmSync(base, { recursive: true, force: true }));
    const lines: string[] = [];
    const log = createLogger({ service: "gate", write: (line: string) => lines.push(line) });
    const make = (name: string, names: string) => {
      const pair = makeCertificate(base, "made", { names });
      const [certPem, keyPem] = [readFileSync(pair.cert, "utf8"), readFileSync(pair.key, "utf8")];
      return { name, certPem, keyPem, isAsked: false };
    };
    const one = make("one.test", "DNS:one.test");
    const wild = make("*.wild.test", "DNS:*.wild.test");
    const folder = join(base, "certificates");
    writeFileSync(folder, "a file is in the way");
    const writer = new CertificateFolder({ folder, log });
    await writer.write([one, wild]);
    await writer.write([one, wild]);
    assert.equal(lines.length, 1, "a fault is logged once");
    assert.match(lines[0]!, /cannot write a certificate for others/);
    rmSync(folder);
    await writer.write([one, wild]);
    assert.deepEqual(readdirSync(folder).sort(), ["_.wild.test.pem", "one.test.pem"]);
    const path = join(folder, "one.test.pem");
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const { current } = new CertificateWatch({ pairs: [{ cert: path, key: path }], log });
    assert.match(String(current.pairs[0]?.cert), /BEGIN CERTIFICATE[^]*BEGIN PRIVATE KEY/);
  },
);
