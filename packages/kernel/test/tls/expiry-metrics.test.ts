// The ends of certificates, as a scrape reports them.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeCertificate, opensslSkip } from "@platform/testing/certificates";
import { createLogger } from "../../src/log/index.ts";
import { MetricRegistry } from "../../src/metrics/index.ts";
import { CertificateWatch, collectExpiry } from "../../src/tls/index.ts";

const DAY_S = 86_400;

/** Days from now until each certificate ends, by its label. */
async function readDays(registry: MetricRegistry): Promise<Map<string, number>> {
  const text = await registry.render();
  const lines = text.matchAll(
    /^platform_certificate_expiry_timestamp_seconds\{certificate="([^"]+)"\} (\S+)$/gm,
  );
  return new Map(
    [...lines].map(([, name, end]) => {
      return [name!, Math.round((Number(end) - Date.now() / 1_000) / DAY_S)];
    }),
  );
}

test(
  "each certificate in use has its end, also after it was replaced",
  { skip: opensslSkip },
  async (t) => {
    const base = mkdtempSync(join(tmpdir(), "expiry-"));
    t.after(() => rmSync(base, { recursive: true }));
    const folder = join(base, "named");
    mkdirSync(folder);
    const files = makeCertificate(base, "main", { days: 30 });
    for (let days = 1; days <= 25; days++) makeCertificate(folder, `n${days}`, { days });
    const log = createLogger({ service: "test", level: "error" });
    const watch = new CertificateWatch({ pairs: [files], folder, log });
    const registry = new MetricRegistry();
    const found: { watch?: CertificateWatch } = {};
    collectExpiry(registry, "test", () => found.watch);
    assert.deepEqual(await readDays(registry), new Map());
    found.watch = watch;
    const days = await readDays(registry);
    assert.equal(days.get(files.cert), 30);
    const named = [...days].filter(([name]) => name !== files.cert);
    assert.deepEqual(
      named,
      Array.from({ length: 20 }, (_, at) => [`n${at + 1}`, at + 1]),
      "those of the folder that end first",
    );
    makeCertificate(base, "main", { days: 60 });
    await watch.check(true);
    assert.equal((await readDays(registry)).get(files.cert), 60);
  },
);
