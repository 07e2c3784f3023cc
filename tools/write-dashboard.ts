// Writes deploy/grafana-dashboard.json, the Grafana dashboard of the platform, from the table below; run `npm run format` afterwards.
import { writeFileSync } from "node:fs";

/** A panel: one expression for each line in it. */
interface Panel {
  title: string;
  unit: string;
  /** PromQL by legend. */
  lines: Readonly<Record<string, string>>;
}

/** Panels by row. `service` is the label of the generated scrape configuration. */
const ROWS: Readonly<Record<string, readonly Panel[]>> = {
  Platform: [
    { title: "Services up", unit: "short", lines: { "{{service}}": 'up{job="platform"}' } },
    {
      title: "CPU",
      unit: "short",
      lines: {
        "{{service}}":
          'sum by (service) (rate(process_cpu_seconds_total{job="platform"}[$__rate_interval]))',
      },
    },
    {
      title: "Memory",
      unit: "bytes",
      lines: { "{{service}}": 'process_resident_memory_bytes{job="platform"}' },
    },
    {
      title: "Event loop lag, 99th percentile",
      unit: "s",
      lines: { "{{service}}": 'nodejs_eventloop_lag_p99_seconds{job="platform"}' },
    },
    {
      title: "Open files",
      unit: "percentunit",
      lines: {
        "{{service}}":
          'process_open_fds{job="platform"} / on (service) process_max_fds{job="platform"}',
      },
    },
    {
      title: "Time since the last backup",
      unit: "s",
      lines: {
        "last backup": "time() - platform_backup_completed_timestamp_seconds < 1e9",
      },
    },
  ],
  Requests: [
    {
      title: "Requests",
      unit: "reqps",
      lines: {
        "{{service}}":
          'sum by (service) (rate(platform_http_requests_total{route!="internal"}[$__rate_interval]))',
        "storage, objects": "sum(rate(platform_vault_http_requests_total[$__rate_interval]))",
      },
    },
    {
      title: "Server errors",
      unit: "reqps",
      lines: {
        "{{service}}":
          'sum by (service) (rate(platform_http_requests_total{status=~"5.."}[$__rate_interval]))',
        "storage, objects":
          'sum(rate(platform_vault_http_requests_total{status=~"5.."}[$__rate_interval]))',
      },
    },
    {
      title: "Latency, 99th percentile",
      unit: "s",
      lines: {
        "{{service}}":
          'histogram_quantile(0.99, sum by (service, le) (rate(platform_http_duration_seconds_bucket{route!="internal"}[$__rate_interval])))',
        "storage, objects":
          "histogram_quantile(0.99, sum by (le) (rate(platform_vault_request_duration_seconds_bucket[$__rate_interval])))",
      },
    },
    {
      title: "Clients disconnected or refused",
      unit: "cps",
      lines: {
        "{{service}} {{reason}}":
          "sum by (service, reason) (rate(platform_http_clients_dropped_total[$__rate_interval]))",
        "{{service}} refused":
          "sum by (service) (rate(platform_http_connections_refused_total[$__rate_interval]))",
      },
    },
  ],
  Gateway: [
    {
      title: "Requests by route",
      unit: "reqps",
      lines: {
        "{{route}}":
          'topk(10, sum by (route) (rate(platform_http_requests_total{service="gateway"}[$__rate_interval])))',
      },
    },
    {
      title: "Connections",
      unit: "short",
      lines: {
        open: "sum(platform_gate_connections_active)",
        WebSockets: "sum(platform_gate_websockets_active)",
      },
    },
    {
      title: "Upstream errors and retries",
      unit: "cps",
      lines: {
        errors: "sum(rate(platform_gate_upstream_errors_total[$__rate_interval]))",
        retries: "sum(rate(platform_gate_retries_total[$__rate_interval]))",
        refused: "sum(rate(platform_gate_retries_refused_total[$__rate_interval]))",
      },
    },
    {
      title: "Refused requests",
      unit: "cps",
      lines: {
        malformed: "sum(rate(platform_gate_bad_requests_total[$__rate_interval]))",
        max_connections: "sum(rate(platform_gate_shed_total[$__rate_interval]))",
      },
    },
  ],
  Identity: [
    {
      title: "Sign-ins",
      unit: "cps",
      lines: {
        "{{method}} {{result}}":
          "sum by (method, result) (rate(platform_auth_logins_total[$__rate_interval]))",
      },
    },
    {
      title: "Access tokens issued",
      unit: "cps",
      lines: {
        "{{grant}}": "sum by (grant) (rate(platform_auth_tokens_issued_total[$__rate_interval]))",
      },
    },
    {
      title: "Active sessions",
      unit: "short",
      lines: { sessions: "platform_auth_sessions_active" },
    },
    {
      title: "Age of the revocation feed",
      unit: "s",
      lines: { "{{service}}": "platform_revocations_age_seconds" },
    },
  ],
  Messaging: [
    {
      title: "Messages published",
      unit: "cps",
      lines: { messages: "rate(platform_pulse_messages_published_total[$__rate_interval])" },
    },
    {
      title: "Dead letters",
      unit: "cps",
      lines: { "dead letters": "rate(platform_pulse_dlq_messages_total[$__rate_interval])" },
    },
    {
      title: "Subscribers and Kafka connections",
      unit: "short",
      lines: {
        subscribers: "platform_pulse_subscribers_count",
        Kafka: "sum(platform_pulse_kafka_connections)",
      },
    },
    {
      title: "Free disk space above the reserve",
      unit: "bytes",
      lines: { log: "platform_pulse_disk_free_bytes - platform_pulse_disk_reserve_bytes" },
    },
  ],
  Storage: [
    {
      title: "Errors by code",
      unit: "cps",
      lines: { "{{code}}": "sum by (code) (rate(platform_vault_errors_total[$__rate_interval]))" },
    },
    {
      title: "Objects and stored bytes",
      unit: "short",
      lines: { objects: "platform_vault_objects_total", bytes: "platform_vault_storage_bytes" },
    },
    {
      title: "Waiting writes",
      unit: "short",
      lines: { "{{for}}": "platform_vault_waiting_writers" },
    },
    { title: "Connections", unit: "short", lines: { open: "platform_vault_connections" } },
  ],
  "Mail and tunnels": [
    {
      title: "Deliveries",
      unit: "cps",
      lines: {
        "{{channel}} {{status}}":
          "sum by (channel, status) (rate(platform_notify_sent_total[$__rate_interval]))",
      },
    },
    { title: "Queued mail", unit: "short", lines: { queued: "platform_notify_queued" } },
    {
      title: "Tunnels",
      unit: "short",
      lines: {
        tunnels: "platform_tunnel_active_tunnels",
        streams: "platform_tunnel_active_streams",
      },
    },
    {
      title: "Requests through tunnels",
      unit: "reqps",
      lines: { requests: "sum(rate(platform_tunnel_requests_proxied_total[$__rate_interval]))" },
    },
  ],
};

const COLUMNS = 24;
const PANEL = { width: 6, height: 7 };
const DATASOURCE = { type: "prometheus", uid: "${datasource}" };

/** Creates the dashboard (https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/). */
export function createDashboard(): object {
  return {
    title: "Platform",
    uid: "platform",
    tags: ["platform"],
    timezone: "browser",
    schemaVersion: 39,
    version: 1,
    refresh: "10s",
    time: { from: "now-1h", to: "now" },
    templating: {
      list: [{ name: "datasource", label: "Data source", type: "datasource", query: "prometheus" }],
    },
    panels: createPanels(),
  };
}

function createPanels(): object[] {
  const panels: object[] = [];
  let y = 0;
  for (const [row, members] of Object.entries(ROWS)) {
    const gridPos = { x: 0, y, w: COLUMNS, h: 1 };
    panels.push({
      id: panels.length + 1,
      type: "row",
      title: row,
      collapsed: false,
      gridPos,
      panels: [],
    });
    y += 1;
    for (const [index, panel] of members.entries()) {
      const perRow = COLUMNS / PANEL.width;
      const x = (index % perRow) * PANEL.width;
      const top = y + Math.floor(index / perRow) * PANEL.height;
      panels.push(createPanel(panels.length + 1, panel, x, top));
    }
    y += Math.ceil(members.length / (COLUMNS / PANEL.width)) * PANEL.height;
  }
  return panels;
}

function createPanel(id: number, { title, unit, lines }: Panel, x: number, y: number): object {
  return {
    id,
    type: "timeseries",
    title,
    datasource: DATASOURCE,
    gridPos: { x, y, w: PANEL.width, h: PANEL.height },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: Object.entries(lines).map(([legendFormat, expr], index) => ({
      refId: String.fromCodePoint(65 + index),
      datasource: DATASOURCE,
      expr,
      legendFormat,
    })),
  };
}

if (import.meta.main) {
  const file = new URL("../deploy/grafana-dashboard.json", import.meta.url);
  writeFileSync(file, `${JSON.stringify(createDashboard(), undefined, 2)}\n`);
}
