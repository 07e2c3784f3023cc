// The scrape configuration of Prometheus for all services of this `up`
// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config).
import type { RunningState } from "./data-folder/running-file.ts";

/** Formats the file. It contains the metrics token. */
export function formatScrapeConfig({ services }: RunningState, token: string): string {
  const targets = services.flatMap(({ label, probe_url: url }) =>
    url === undefined
      ? []
      : `      - targets: ["${new URL(url).host}"]\n        labels: { service: ${label} }\n`,
  );
  return `# Generated at each start: run prometheus --config.file with it, or copy it to your own configuration.
scrape_configs:
  - job_name: platform
    authorization: { credentials: ${token} }
    static_configs:
${targets.join("")}`;
}
