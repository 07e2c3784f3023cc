// Certificates of names, and when they count as obtained.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { AcmeFiles } from "../../src/acme/acme-files.ts";
import { CertificateManager } from "../../src/acme/certificate-manager.ts";

/** A manager without a directory; `onChanged` stands for the change of all workers. */
async function openManager(context: TestContext, onChanged: () => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), "certificates-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const lines: string[] = [];
  const log = createLogger({ service: "gate", write: (line: string) => lines.push(line) });
  const directoryUrl = "https://localhost:9/dir";
  const manager = new CertificateManager({
    settings: {
      directoryUrl,
      ca: undefined,
      email: undefined,
      binding: undefined,
      profile: undefined,
      keyType: "p256",
      challenges: ["http-01"],
    },
    files: new AcmeFiles({ folder, directoryUrl, isEphemeral: false, log, readNowMs: Date.now }),
    userAgent: "test",
    lock: () => Promise.resolve(),
    publish: () => Promise.reject(new Error("not expected")),
    shared: () => undefined,
    onChanged,
    log,
  });
  await manager.load();
  const make = () => {
    const pair = makeCertificate(folder, "one.test", { names: "DNS:one.test" });
    const [certPem, keyPem] = [readFileSync(pair.cert, "utf8"), readFileSync(pair.key, "utf8")];
    return { name: "one.test", certPem, keyPem, isAsked: false };
  };
  return { manager, lines, make, certificate: make() };
}

test("a certificate is reported once all workers have it", { skip }, async (context) => {
  const applied = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const { manager, lines, certificate } = await openManager(context, () => {
    asked.resolve();
    return applied.promise;
  });
  manager.setNames([{ name: "one.test", isAsked: false }]);
  const adopted = manager.adopt(certificate);
  await asked.promise;
  assert.equal(manager.list().length, 1, "the change has it");
  assert.equal(manager.listNames()[0]?.fingerprint_sha256, null);
  assert.equal(manager.describe(), "one.test has no certificate yet");
  assert.deepEqual(lines, []);
  applied.resolve();
  await adopted;
  assert.match(manager.listNames()[0]?.fingerprint_sha256 ?? "", /^[0-9A-F:]+$/);
  assert.equal(manager.describe(), undefined);
  assert.match(lines.join(), /certificate of another gateway adopted/);
});

test("a name that comes back has its stored certificate", { skip }, async (context) => {
  const { manager, certificate } = await openManager(context, () => Promise.resolve());
  const name = { name: "one.test", isAsked: false };
  assert.equal(manager.setNames([name]), false, "without a certificate, nothing changes");
  await manager.adopt(certificate);
  assert.equal(manager.setNames([]), true);
  assert.equal(manager.list().length, 0);
  assert.equal(manager.setNames([name]), true, "the workers lack it");
  assert.equal(manager.list().length, 1);
  assert.equal(manager.describe(), "one.test has no certificate yet");
  await manager.install();
  assert.equal(manager.describe(), undefined);
});

test(
  "gateways that ordered within one second agree on a certificate",
  { skip },
  async (context) => {
    const [here, there] = [
      await openManager(context, () => Promise.resolve()),
      await openManager(context, () => Promise.resolve()),
    ];
    const startOf = ({ certPem }: { certPem: string }): string =>
      new X509Certificate(certPem).validFrom;
    let [one, other] = [here.make(), here.make()];
    while (startOf(one) !== startOf(other)) [one, other] = [other, here.make()];
    for (const certificate of [one, other]) await here.manager.adopt(certificate);
    for (const certificate of [other, one]) await there.manager.adopt(certificate);
    assert.deepEqual(here.manager.listStored(), there.manager.listStored());
  },
);
