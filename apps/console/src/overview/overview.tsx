// The overview: is all well, and what needs the operator.
import { useCommands, useCrumbs, useTrace, type Fact } from "../stage/stage.ts";
import {
  attention,
  changes,
  feeds,
  historyOf,
  isDown,
  isRefused,
  liveState,
} from "../live/live.ts";
import { describeServices, type ServiceLabel } from "../session/service-labels.ts";
import { config, services } from "../session/session.ts";
import { formatMoment, formatTime, splitFigure } from "../format/format.ts";
import { href, navigate } from "../router/router.ts";
import { Spark } from "../chart/spark.tsx";
import { Section } from "../view/controls.tsx";
import { ServiceMark } from "../view/icon.tsx";
import { Split } from "../view/pane.tsx";
import { State, StateMark, type StateKind } from "../view/state.tsx";
import { t } from "../words/words.ts";
import { LEDGER, type LedgerFigure } from "./ledger.ts";
import { Addresses } from "./addresses.tsx";
import { isFirstRun } from "./arrivals.ts";
import { FirstRun } from "./first-run.tsx";
import { RequestsChart } from "./requests-chart.tsx";

const CHANGES_SHOWN = 8;

/** The first page. */
export function OverviewPage() {
  useCrumbs([{ label: t("Overview") }]);
  const list = describeServices(services.value);
  const main = list.find(({ id }) => id === "gate") ?? list[0];
  useTrace(
    main === undefined
      ? undefined
      : {
          label: main.id === "gate" ? t("All requests") : main.label,
          service: main.id,
          figure: "requests",
          errors: "errors",
          facts: totals(main),
        },
  );
  useCommands(
    attention.value.flatMap(({ title, href: to }) =>
      to === undefined || !to.startsWith("/")
        ? []
        : [{ label: title, icon: "next", run: () => navigate(readPath(to)) }],
    ),
  );
  if (isFirstRun()) return <FirstRun list={list} />;
  return (
    <Split pane={<Side />}>
      <h1 class="hidden">{t("Overview")}</h1>
      <div class="phone-first">
        <Needs />
      </div>
      <Ledger list={list} />
      {main !== undefined && <RequestsChart service={main.id} label={main.label} />}
    </Split>
  );
}

function totals(main: ServiceLabel): Fact[] {
  const feed = feeds.value.get(main.id);
  const wanted: [string, string][] = [
    ["requests", t("requests")],
    ["latency_p99", "p99"],
    ["errors", t("errors")],
    ["active", t("active")],
  ];
  return wanted.flatMap(([name, label]) => {
    const info = feed?.figures.find((figure) => figure.name === name);
    if (feed === undefined || info === undefined) return [];
    const value = feed.values[name] ?? null;
    const [number, unit] = splitFigure(value, info.unit);
    return [{ value: number, unit, label, isBad: name === "errors" && (value ?? 0) > 0 }];
  });
}

function Ledger({ list }: { list: readonly ServiceLabel[] }) {
  return (
    <div class="ledger-box">
      <table class="table ledger" aria-label={t("Services")}>
        <thead>
          <tr>
            <th>{t("Service")}</th>
            <th class="wide-only w-state">{t("State")}</th>
            <th colSpan={3} class="now">
              {t("Now")}
            </th>
            <th class="num w-spark">{t("Last 5 minutes")}</th>
          </tr>
        </thead>
        <tbody>
          {list.map((service) => (
            <LedgerRow key={service.id} service={service} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LedgerRow({ service }: { service: ServiceLabel }) {
  const rows = LEDGER[service.id];
  const [kind, word] = stateOf(service);
  return (
    <tr data-row={service.id} class={isOld(service.id) ? "old" : ""}>
      <td>
        <a class="svc" href={href(service.to)}>
          <ServiceMark id={service.id} />
          <span>
            {service.label}
            <small class="svc-state">
              <StateMark kind={kind} /> {word}
            </small>
          </span>
        </a>
      </td>
      <td class="wide-only w-state">
        <State kind={kind}>{word}</State>
      </td>
      {rows.map((row, index) => (
        <td key={row.figure} class={index > 0 ? "wide-only" : "now"}>
          <LedgerValue id={service.id} row={row} />
        </td>
      ))}
      <td class="w-spark">
        <Spark values={historyOf(service.id, rows[0]!.figure)} hue={`hue-${service.id}`} />
      </td>
    </tr>
  );
}

/** True if the figures are of a time before a loss. */
function isOld(id: ServiceLabel["id"]): boolean {
  return liveState.value.kind === "lost" || isDown(feeds.value.get(id));
}

function LedgerValue({ id, row }: { id: ServiceLabel["id"]; row: LedgerFigure }) {
  const feed = feeds.value.get(id);
  const info = feed?.figures.find(({ name }) => name === row.figure);
  if (info === undefined) return null;
  const value = feed?.values[row.figure] ?? null;
  const [number, unit] = splitFigure(value, info.unit);
  return (
    <span class={row.isBad === true && (value ?? 0) > 0 ? "fig bad" : "fig"}>
      {number}
      <small>
        {unit === "/s" ? "" : unit} {row.label()}
      </small>
    </span>
  );
}

function stateOf({ id, isUp }: ServiceLabel): [StateKind, string] {
  const feed = feeds.value.get(id);
  if (feed === undefined) return isUp ? ["ok", t("Up")] : ["off", t("No answer")];
  if (!feed.isUp) {
    if (isRefused(feed)) return ["off", t("No access")];
    const since = feed.downSince > 0 ? formatTime(feed.downSince) : "";
    return ["bad", t("Down since {time}", { time: since })];
  }
  const worst = feed.attention[0];
  if (worst === undefined) return ["ok", t("Serving")];
  return [worst.level === "critical" ? "bad" : "warn", worst.title];
}

/** Path below `/ui` of a condition's page. */
function readPath(to: string): string {
  return to.startsWith("/ui/") ? to.slice("/ui".length) : to;
}

/** Conditions and services that do not answer. */
function Needs() {
  const items = attention.value;
  const down = services.value.filter(({ id }) => isDown(feeds.value.get(id)));
  const refused = services.value.filter(({ id }) => isRefused(feeds.value.get(id)));
  return (
    <Section title={t("Needs you")} note={items.length + down.length}>
      {items.length + down.length + refused.length === 0 && (
        <p class="lead">
          {liveState.value.kind === "live" ? (
            <State kind="ok">{t("Nothing: all services work.")}</State>
          ) : (
            <State kind="off">{t("Not known yet: the console waits for the services.")}</State>
          )}
        </p>
      )}
      {refused.length > 0 && (
        <p class="lead">
          <State kind="off">
            {t("This account may not see the state of {names}: it needs a role for that.", {
              names: describeServices(refused)
                .map(({ label }) => label)
                .join(", "),
            })}
          </State>
        </p>
      )}
      {down.map(({ id }) => {
        const feed = feeds.value.get(id);
        const label = describeServices(services.value).find((one) => one.id === id)?.label ?? id;
        return (
          <div key={id} class="need">
            <StateMark kind="bad" />
            <b>{t("{name} does not answer", { name: label })}</b>
            <p>
              {feed?.status === 0 ? t("The console keeps trying.") : feed?.detail}{" "}
              <span class="i3">
                {t("since {time}", { time: formatTime(feed?.downSince ?? 0) })}
              </span>
            </p>
          </div>
        );
      })}
      {items.map((item) => (
        <div key={item.service + item.id} class="need">
          <StateMark kind={item.level === "critical" ? "bad" : "warn"} />
          <b>{item.title}</b>
          <p>
            {item.detail}{" "}
            <span class="i3">{t("since {time}", { time: formatTime(item.since) })}</span>
          </p>
          {item.href !== undefined && item.href.startsWith("/") && (
            <a href={href(readPath(item.href))}>{t("Open")} →</a>
          )}
        </div>
      ))}
    </Section>
  );
}

/** The version of the product, which is that of the platform's own service or of the one that is open; those of all services are in a tooltip. */
function Version() {
  const versions = new Map(services.value.map(({ id, version }) => [id, version]));
  const all = describeServices(services.value).map(
    ({ id, label }) => `${label} ${versions.get(id) ?? "–"}`,
  );
  return (
    <Section
      title={t("Version")}
      note={config.value?.mode === "service" ? t("one service") : undefined}
    >
      <p class="mono version-line" title={all.join("\n")}>
        {versions.get("runtime") ?? versions.get("gate") ?? [...versions.values()][0] ?? "–"}
      </p>
    </Section>
  );
}

function Side() {
  const recent = changes.value.slice(0, CHANGES_SHOWN);
  return (
    <>
      <div class="wide-block">
        <Needs />
      </div>
      <Section title={t("Changes")} note={t("since the start")}>
        {recent.length === 0 && <p class="lead">{t("No changes yet.")}</p>}
        {recent.map((change) => (
          <div key={change.service + change.at + change.title} class="change">
            <span class="mono i3" title={formatMoment(change.at)}>
              {formatTime(change.at)}
            </span>
            <span class="i2">{change.actor ?? ""}</span>
            <span title={change.title}>{change.title}</span>
            <ServiceMark id={change.service} size={13} />
          </div>
        ))}
      </Section>
      <Addresses />
      <Version />
    </>
  );
}
