// The scrape configuration of Prometheus for all services of this `up`
// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config).
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RunningState } from "./data-folder/running-file.ts";

const ALERTS = fileURLToPath(new URL("../../../deploy/alerts.yml", import.meta.url));

/** Options of {@link formatScrapeConfig}. */
export interface ScrapeOptions {
  /** The metrics token. */
  token: string;
  /** Base URL of the platform's own API, which has metrics of all services. */
  apiUrl: string;
}

/** Formats the file. It contains the metrics token. */
export function formatScrapeConfig(
  { services }: RunningState,
  { token, apiUrl }: ScrapeOptions,
): string {
  const own = { label: "platform", url: new URL(apiUrl) };
  const probed = services.flatMap(({ label, probe_url: url }) =>
    url === undefined ? [] : [{ label, url: new URL(url) }],
  );
  probed.push(own);
  // An image may leave the file out.
  const rules = existsSync(ALERTS) ? `rule_files: [${JSON.stringify(ALERTS)}]\n` : "";
  const plain = probed.filter(({ url }) => url.protocol === "http:");
  const secure = probed.filter(({ url }) => url.protocol === "https:");
  return `# Generated at each start: run prometheus --config.file with it, or copy it to your own configuration.
${rules}scrape_configs:
${formatJob("platform", plain, token, "")}${formatJob("platform-tls", secure, token, TLS_LINES)}`;
}

interface Probed {
  label: string;
  url: URL;
}

// Certificates are for public names; the targets are on this machine.
const TLS_LINES = `    scheme: https
    tls_config: { insecure_skip_verify: true }
`;

function formatJob(name: string, targets: readonly Probed[], token: string, more: string): string {
  if (targets.length === 0) return "";
  const lines = targets.map(
    ({ label, url }) => `      - targets: ["${url.host}"]\n        labels: { service: ${label} }\n`,
  );
  return `  - job_name: ${name}
    authorization: { credentials: ${token} }
${more}    static_configs:
${lines.join("")}`;
}
