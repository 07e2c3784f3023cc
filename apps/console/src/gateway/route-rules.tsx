// The rules of a route in words; settings that have none are shown as they are configured.
import { formatBytes, formatNumber } from "../format/format.ts";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { t } from "../words/words.ts";
import type { Route } from "./routes.ts";

const SECOND_MS = 1_000;
const UNITS = [
  [3_600_000, "h"],
  [60_000, "min"],
  [SECOND_MS, "s"],
  [1, "ms"],
] as const;

/** Members that name the route or are shown elsewhere on its page. */
const HIDDEN = new Set([
  "prefix",
  "host",
  "methods",
  "target",
  "targets",
  "targets_weighted",
  "status",
  "variant",
  "declared_at",
  "cache_version",
  "canary_auto_promote",
  "canary_promote_step",
  "canary_promote_sec",
  "canary_max_error_rate",
]);

/** One rule: its members of the route, and its words. */
interface Rule {
  names: readonly string[];
  term: () => string;
  /** Undefined: the members are shown as they are. */
  describe: (route: Route) => string | undefined;
}

const RULES: readonly Rule[] = [
  { names: ["auth"], term: () => t("Access"), describe: describeAccess },
  {
    names: ["rate_limit_rpm"],
    term: () => t("Rate limit"),
    describe: ({ rate_limit_rpm: n }) =>
      isNumber(n) ? t("{n} a minute and address", { n: formatNumber(n) }) : undefined,
  },
  {
    names: ["max_concurrent_requests", "max_queue_size", "queue_timeout_ms"],
    term: () => t("Concurrency"),
    describe: describeConcurrency,
  },
  {
    names: ["max_body_size"],
    term: () => t("Body"),
    describe: ({ max_body_size: n }) =>
      isNumber(n) ? t("at most {size}", { size: formatBytes(n) }) : undefined,
  },
  {
    names: ["connect_timeout_ms", "response_timeout_ms", "idle_timeout_ms", "total_timeout_ms"],
    term: () => t("Timeouts"),
    describe: describeTimeouts,
  },
  {
    names: ["cache_ttl_seconds"],
    term: () => t("Cache"),
    describe: ({ cache_ttl_seconds: n }) => (isNumber(n) ? formatExact(n * SECOND_MS) : undefined),
  },
  { names: ["circuit_breaker"], term: () => t("Circuit breaker"), describe: describeBreaker },
  {
    names: ["access_log"],
    term: () => t("Log"),
    describe: ({ access_log: isLogged }) =>
      isLogged === true ? t("each request") : isLogged === false ? t("off") : undefined,
  },
];

/** The rules with their source. */
export function RouteRules({ route }: { route: Route }) {
  const told = RULES.flatMap(({ names, term, describe }) => {
    const text = names.some((name) => route[name] !== undefined) ? describe(route) : undefined;
    return text === undefined ? [] : [{ names, term: term(), text }];
  });
  const toldNames = new Set(told.flatMap(({ names }) => names));
  const others = Object.entries(route).filter(
    ([name]) => !HIDDEN.has(name) && !toldNames.has(name),
  );
  return (
    <Section title={t("Active rules")} note={route.declared_at ?? route.status.source}>
      {told.length + others.length === 0 && <p class="i2">{t("None: every default applies.")}</p>}
      <Facts>
        {told.map(({ term, text }) => (
          <FactRow key={term} term={term}>
            <span class="wrap">{text}</span>
          </FactRow>
        ))}
        {others.map(([name, value]) => (
          <FactRow key={name} term={name.replaceAll("_", " ")} isMono>
            <span class="wrap">{typeof value === "string" ? value : JSON.stringify(value)}</span>
          </FactRow>
        ))}
      </Facts>
    </Section>
  );
}

function describeAccess({ auth }: Route): string | undefined {
  const {
    type,
    required_scope: scope,
    issuer,
    url,
  } = auth as unknown as Record<string, string | undefined>;
  switch (type) {
    case "none":
      return t("open to all");
    case "bearer":
      return scope === undefined ? t("with a token") : t("with a token for {scope}", { scope });
    case "oidc":
      return t("after sign-in at {issuer}", { issuer: issuer ?? "" });
    case "forward":
      return t("{url} decides", { url: url ?? "" });
    default:
      return undefined;
  }
}

function describeConcurrency(route: Route): string | undefined {
  const { max_concurrent_requests: n, max_queue_size: queue, queue_timeout_ms: waitMs } = route;
  if (!isNumber(n)) return undefined;
  if (!isNumber(queue)) return t("{n} at once", { n: formatNumber(n) });
  const words = { n: formatNumber(n), queue: formatNumber(queue) };
  if (!isNumber(waitMs)) return t("{n} at once, {queue} wait", words);
  return t("{n} at once, {queue} wait up to {time}", { ...words, time: formatExact(waitMs) });
}

function describeTimeouts(route: Route): string {
  const named: readonly (readonly [name: string, label: string])[] = [
    ["connect_timeout_ms", t("connection {time}")],
    ["response_timeout_ms", t("response {time}")],
    ["idle_timeout_ms", t("idle {time}")],
    ["total_timeout_ms", t("in all {time}")],
  ];
  const set = named.flatMap(([name, label]) => {
    const ms = route[name];
    return isNumber(ms) ? [label.replace("{time}", formatExact(ms))] : [];
  });
  return set.join(", ");
}

function describeBreaker({ circuit_breaker: breaker }: Route): string | undefined {
  if (breaker === false) return t("off");
  if (typeof breaker !== "object" || breaker === null) return undefined;
  const settings = breaker as Record<string, unknown>;
  const { error_rate: rate, min_requests: n, window_sec: seconds } = settings;
  if (!isNumber(rate) || !isNumber(n) || !isNumber(seconds)) return undefined;
  return t("opens at {rate} % failures of {n} in {seconds} s", {
    rate: formatNumber(rate * 100),
    n: formatNumber(n),
    seconds: formatNumber(seconds),
  });
}

/** A duration in the largest unit in which it is a whole number. */
function formatExact(ms: number): string {
  const [unitMs, unit] = UNITS.find(([size]) => ms % size === 0)!;
  return `${formatNumber(ms / unitMs)}\u00A0${unit}`;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}
