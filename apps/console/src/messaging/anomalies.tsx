// Unusual rates, sizes and fields of the messages of a topic.
import { segment } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatAgo, formatBytes, formatMoment, formatNumber } from "../format/format.ts";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";

type Found = Answer<"pulse", "GET /topics/{topic}/anomalies">;
type Anomaly = Found["anomalies"][number];

const EVERY_MS = 10_000;
const MARKS: Readonly<Record<Anomaly["severity"], StateKind>> = {
  low: "off",
  medium: "warn",
  high: "bad",
};

/** The tab of a topic. */
export function AnomaliesTab({ topic }: { topic: string }) {
  const loaded = useLoad(
    `anomalies ${topic}`,
    () => callBroker<Found>(`/topics/${segment(topic)}/anomalies`),
    EVERY_MS,
  );
  return (
    <Loading of={loaded}>
      {({ anomalies, baseline, learning }) => (
        <Split
          pane={
            <Section title={t("Usual")} note={learning ? t("still learning") : ""}>
              <Facts>
                <FactRow term={t("messages/s")} isMono>
                  {`${formatNumber(baseline.rate, 2)} ± ${formatNumber(baseline.rate_deviation, 2)}`}
                </FactRow>
                <FactRow term={t("payload")} isMono>
                  {formatBytes(baseline.bytes)}
                </FactRow>
                <FactRow term={t("fields")} isMono>
                  {formatNumber(baseline.paths)}
                </FactRow>
              </Facts>
              {learning && (
                <p class="hint">{t("Rates are judged after the first half hour of samples.")}</p>
              )}
            </Section>
          }
        >
          {anomalies.length === 0 ? (
            <Empty title={t("Nothing unusual")}>
              <p>{t("Rates, sizes and fields are compared with those of the hours before.")}</p>
            </Empty>
          ) : (
            <AnomalyTable topic={topic} anomalies={anomalies} />
          )}
        </Split>
      )}
    </Loading>
  );
}

function AnomalyTable({ topic, anomalies }: { topic: string; anomalies: readonly Anomaly[] }) {
  return (
    <Table
      label={t("Anomalies of {name}", { name: topic })}
      rows={anomalies}
      isTall
      idOf={({ id }) => id}
      columns={[
        {
          title: t("What"),
          render: ({ kind, path, detail }) => (
            <span class="two">
              <b>{path === undefined ? describeKind(kind) : `${describeKind(kind)}: ${path}`}</b>
              <small>{detail}</small>
            </span>
          ),
        },
        {
          title: t("Severity"),
          kind: "w-s",
          render: ({ severity, until }) => (
            <State kind={until === null ? MARKS[severity] : "off"}>
              {describeSeverity(severity)}
            </State>
          ),
        },
        {
          title: t("Began"),
          kind: "w-m wide-only",
          render: ({ since }) => <span title={formatMoment(since)}>{formatAgo(since)}</span>,
        },
        {
          title: t("Ended"),
          kind: "w-m wide-only",
          render: ({ until }) =>
            until === null ? (
              t("lasts")
            ) : (
              <span title={formatMoment(until)}>{formatAgo(until)}</span>
            ),
        },
      ]}
    />
  );
}

function describeSeverity(severity: Anomaly["severity"]): string {
  switch (severity) {
    case "low":
      return t("low");
    case "medium":
      return t("medium");
    case "high":
      return t("high");
    default:
      return severity satisfies never;
  }
}

function describeKind(kind: Anomaly["kind"]): string {
  switch (kind) {
    case "rate_spike":
      return t("More messages than usual");
    case "rate_drop":
      return t("Fewer messages than usual");
    case "size_spike":
      return t("Larger payloads than usual");
    case "field_missing":
      return t("A field is missing");
    case "field_new":
      return t("A new field");
    case "type_changed":
      return t("A field has another type");
    case "not_json":
      return t("Payloads that are not JSON");
    default:
      return kind satisfies never;
  }
}
