// The audit log of a database: who ran or changed something, newest first.
import type { Answer } from "../contract/answer.ts";
import { withQuery } from "../api/api.ts";
import { formatDate, formatMoment, formatNumber } from "../format/format.ts";
import { queryValue } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { DatabaseFrame, useDatabase, type DatabaseName } from "./database-frame.tsx";

type AuditPageAnswer = Answer<"runtime", "GET /data-audit">;
type Verdict = Answer<"runtime", "GET /data-audit/verification">;
type Event = AuditPageAnswer["items"][number];

const PAGE = 100;

export function AuditPage(name: DatabaseName) {
  const state = useDatabase(name);
  const target = `${name.project}/${name.database}`;
  const cursor = queryValue("cursor");
  const loaded = useLoad(`audit ${target} ${cursor}`, async () =>
    callService<AuditPageAnswer>(
      "runtime",
      withQuery("/data-audit", { target, cursor, limit: PAGE }),
    ),
  );
  const chain = useLoad("audit chain", async () =>
    callService<Verdict>("runtime", "/data-audit/verification"),
  );
  const verdict = chain.data.value;
  return (
    <DatabaseFrame {...name} tab="audit" mode={state?.mode}>
      <div class="sheet">
        {verdict !== undefined && (
          <p class="lead api-lead">
            {verdict.intact ? (
              <State kind="ok">
                {t("The chain of {n} entries is intact.", { n: formatNumber(verdict.events) })}
              </State>
            ) : (
              <State kind="bad">
                {t("The chain is broken at entry {n}.", { n: formatNumber(verdict.broken_at) })}
              </State>
            )}
          </p>
        )}
        <Loading of={loaded}>
          {({ items, next_cursor: next }) =>
            items.length === 0 ? (
              <Empty title={t("No entry yet")} />
            ) : (
              <>
                <Events items={items} />
                <NextPage cursor={next} />
              </>
            )
          }
        </Loading>
      </div>
    </DatabaseFrame>
  );
}

function Events({ items }: { items: readonly Event[] }) {
  return (
    <Table
      label={t("Audit")}
      rows={items}
      idOf={({ seq }) => String(seq)}
      columns={[
        {
          title: t("Time"),
          kind: "w-m",
          render: ({ at }) => (
            <span class="mono i3" title={formatMoment(at)}>
              {formatDate(at)}
            </span>
          ),
        },
        {
          title: t("Person"),
          kind: "w-m wide-only",
          render: ({ actor, detail }) => readText(detail["name"]) || actor,
        },
        {
          title: t("Action"),
          kind: "w-m",
          render: ({ action, outcome, detail }) => (
            <ActionName action={action} outcome={outcome} detail={detail} />
          ),
        },
        { title: t("Subject"), kind: "mono", render: ({ detail }) => describe(detail) },
        {
          title: t("Rows"),
          kind: "w-s wide-only",
          isNumber: true,
          render: ({ detail }) =>
            typeof detail["rows"] === "number" ? formatNumber(detail["rows"]) : "–",
        },
      ]}
    />
  );
}

function ActionName({ action, outcome, detail }: Pick<Event, "action" | "outcome" | "detail">) {
  const name = action.replace("data.", "");
  if (detail["state"] === "begun") {
    return (
      <span class="bad" title={t("It was begun, and its end is not known")}>
        {name} ?
      </span>
    );
  }
  return <span class={outcome === "failure" ? "bad" : ""}>{name}</span>;
}

function describe(detail: Event["detail"]): string {
  const sql = readText(detail["sql"]);
  if (sql !== "") return sql;
  const columns = detail["columns"];
  const key = detail["key"] === undefined ? "" : JSON.stringify(detail["key"]);
  const names = Array.isArray(columns) ? columns.join(", ") : readText(detail["column"]);
  return [readText(detail["table"]), key, names].filter((one) => one !== "").join(" ");
}

function readText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
