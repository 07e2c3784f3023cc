// Metrics of the identity service in addition to those of every service.
import type { Figure } from "@platform/kernel/feeds";
import { sumSeries, type LabelPairs, type MetricRegistry } from "@platform/kernel/metrics";
import type { CountLogin } from "./sign-in/credential-verifier.ts";

const LOGINS = "platform_auth_logins_total";
const TOKENS = "platform_auth_tokens_issued_total";

/** Counters of the service. */
export interface AuthMetrics {
  countLogin: CountLogin;
  countMfa: (factor: string, result: string) => void;
  countToken: (grant: string) => void;
}

/** Values that are read at each scrape. */
export interface AuthGauges {
  countSessions: () => Promise<number>;
  getKeyAgeSeconds: () => number;
}

export function createAuthMetrics(registry: MetricRegistry, gauges: AuthGauges): AuthMetrics {
  const logins = registry.counter({
    name: LOGINS,
    help: "Sign-ins by method and result.",
    labels: ["method", "result"],
  });
  const factors = registry.counter({
    name: "platform_auth_mfa_verifications_total",
    help: "Second-factor verifications by kind and result.",
    labels: ["factor", "result"],
  });
  const tokens = registry.counter({
    name: TOKENS,
    help: "Access tokens issued, by grant type.",
    labels: ["grant"],
  });
  registry.collect({
    name: "auth",
    collect: async () => [
      {
        name: "platform_auth_sessions_active",
        help: "Active sessions.",
        type: "gauge",
        samples: [{ labels: [], value: await gauges.countSessions() }],
      },
      {
        name: "platform_auth_key_age_seconds",
        help: "Age of the active signing key.",
        type: "gauge",
        samples: [{ labels: [], value: gauges.getKeyAgeSeconds() }],
      },
    ],
  });
  return {
    countLogin: (method, result) => logins.with({ method, result }).add(),
    countToken: (grant) => tokens.with({ grant }).add(),
    countMfa: (factor, result) => factors.with({ factor, result }).add(),
  };
}

/** Figures of the admin feeds. */
export function createFigures(registry: MetricRegistry): Figure[] {
  const figure = (
    name: string,
    title: string,
    metric: string,
    accepts: (labels: LabelPairs) => boolean,
  ): Figure => ({
    name,
    unit: "1/s",
    title,
    kind: "counter",
    read: () => sumSeries(registry.find(metric), accepts),
  });
  const hasFailed = (labels: LabelPairs) =>
    labels.some(([name, value]) => name === "result" && value !== "success");
  return [
    figure("sign_ins", "Sign-ins", LOGINS, (labels) => !hasFailed(labels)),
    figure("failed_sign_ins", "Failed sign-ins", LOGINS, hasFailed),
    figure("tokens", "Access tokens issued", TOKENS, () => true),
  ];
}
