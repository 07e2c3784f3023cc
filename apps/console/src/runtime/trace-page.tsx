// A trace over all services: its spans as a waterfall, and its lines of the log.
import { formatTime } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { useCrumbs } from "../stage/stage.ts";
import { describeServices } from "../session/service-labels.ts";
import { services } from "../session/session.ts";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { JsonBlock } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { ErrorDetail, readError } from "./error-detail.tsx";
import { isTraceId, loadTrace, type FoundTrace, type Span } from "./trace.ts";
import { formatMs, labelOf, Waterfall } from "./waterfall.tsx";

type LogLine = FoundTrace["lines"][number];

/** The page of a trace. */
export function TracePage({ id }: { id: string }) {
  useCrumbs([{ label: t("Runtime") }, { label: t("Trace") }]);
  const loaded = useLoad(`trace ${id}`, async (signal) =>
    isTraceId(id) ? loadTrace(id, signal) : { spans: [], lines: [], silent: [], durationMs: 0 },
  );
  const found = loaded.data.value;
  const chosen = found?.spans.find(({ span }) => span.span_id === queryValue("span"))?.span;
  return (
    <Split
      pane={chosen === undefined ? undefined : <SpanPane of={chosen} />}
      onClosePane={() => setQuery({ span: undefined })}
    >
      <Title actions={<CopyButton text={id} label={t("Copy trace id")} />}>{t("Trace")}</Title>
      <p class="lead mono wrap trace-id">{id}</p>
      <Loading of={loaded}>{(trace) => <Content trace={trace} chosen={chosen?.span_id} />}</Loading>
    </Split>
  );
}

function Content({ trace, chosen }: { trace: FoundTrace; chosen: string | undefined }) {
  const { spans, lines, silent, durationMs } = trace;
  const errors = lines.flatMap((line) => {
    const error = readError(line.fields);
    return error === undefined || line.level !== "error" ? [] : [{ line, error }];
  });
  return (
    <>
      {errors.map(({ line, error }) => (
        <Section key={line.id} title={line.service} note={line.msg}>
          <ErrorDetail of={error} />
        </Section>
      ))}
      {silent.length > 0 && (
        <p class="banner" role="status">
          {t("No answer, or no access: {names}", {
            names: describeServices(services.value)
              .filter((one) => silent.includes(one.id))
              .map(({ label }) => label)
              .join(", "),
          })}
        </p>
      )}
      {spans.length === 0 ? (
        <Empty title={t("No service has spans of it")}>
          <p>{t("Services keep the last ones in memory: errors and slow requests longest.")}</p>
        </Empty>
      ) : (
        <Waterfall
          spans={spans}
          durationMs={durationMs}
          chosen={chosen}
          onSelect={(span) => setQuery({ span })}
        />
      )}
      {lines.length > 0 && <Lines lines={lines} />}
    </>
  );
}

function SpanPane({ of: span }: { of: Span }) {
  return (
    <>
      <Section title={labelOf(span.service)} note={span.kind}>
        <p class="mono wrap">{span.name}</p>
        <div class="space" />
        <Facts>
          <FactRow term={t("Begin")}>{formatTime(span.start_ms, true)}</FactRow>
          <FactRow term={t("Duration")}>{formatMs(span.duration_ms)}</FactRow>
          <FactRow term={t("State")}>
            <State kind={span.status === "error" ? "bad" : "ok"}>
              {span.status_message === "" ? span.status : span.status_message}
            </State>
          </FactRow>
        </Facts>
      </Section>
      <Section title={t("Fields")}>
        <JsonBlock text={JSON.stringify(span.attributes)} mark="" />
      </Section>
      {span.events.length > 0 && (
        <Section title={t("Events")}>
          <JsonBlock text={JSON.stringify(span.events)} mark="" label={t("Events")} />
        </Section>
      )}
    </>
  );
}

function Lines({ lines }: { lines: readonly LogLine[] }) {
  return (
    <Section title={t("Log")} note={lines.length}>
      <Table
        label={t("Lines of the log")}
        rows={lines}
        idOf={({ id }) => id}
        columns={[
          {
            title: t("Time"),
            kind: "w-m mono",
            render: (line) => formatTime(line.timestamp, true),
          },
          {
            title: t("Service"),
            kind: "w-m wide-only",
            render: ({ service }) => labelOf(service),
          },
          {
            title: t("Message"),
            render: ({ msg, level }) => (
              <span class={level === "error" ? "bad" : ""} title={msg}>
                {msg}
              </span>
            ),
          },
        ]}
      />
    </Section>
  );
}
