// The scrape configuration that `platform up` writes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { formatScrapeConfig } from "../src/scrape-config.ts";

test("services with TLS are scraped by https, the others by http", () => {
  const services = ["https://localhost:8443", "http://localhost:8086"].map((url) => ({
    name: "",
    label: url.slice(0, url.indexOf(":")),
    state: "running" as const,
    url,
    probe_url: url,
    listeners: [],
    restarts: 0,
  }));
  const state = { pid: 1, version: "1.0.0", started_at: "", services };
  const [, ...lines] = formatScrapeConfig(state, {
    token: "secret",
    apiUrl: "http://localhost:8090",
  }).split("\n");
  const alerts = fileURLToPath(new URL("../../../deploy/alerts.yml", import.meta.url));
  assert.equal(
    lines.join("\n"),
    `rule_files: [${JSON.stringify(alerts)}]
scrape_configs:
  - job_name: platform
    authorization: { credentials: secret }
    static_configs:
      - targets: ["localhost:8086"]
        labels: { service: http }
      - targets: ["localhost:8090"]
        labels: { service: platform }
  - job_name: platform-tls
    authorization: { credentials: secret }
    scheme: https
    tls_config: { insecure_skip_verify: true }
    static_configs:
      - targets: ["localhost:8443"]
        labels: { service: https }
`,
  );
});
