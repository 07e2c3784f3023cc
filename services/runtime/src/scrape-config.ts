// The scrape configuration of Prometheus for all services of this `up`
// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config).
import type { RunningState } from "./data-folder/running-file.ts";

/** Formats the file. It contains the metrics token. */
export function formatScrapeConfig({ services }: RunningState, token: string): string {
  const probed = services.flatMap(({ label, probe_url: url }) =>
    url === undefined ? [] : [{ label, url: new URL(url) }],
  );
  const plain = probed.filter(({ url }) => url.protocol === "http:");
  const secure = probed.filter(({ url }) => url.protocol === "https:");
  return `# Generated at each start: run prometheus --config.file with it, or copy it to your own configuration.
scrape_configs:
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
