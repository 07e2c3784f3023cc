// Saved queries, those of the project's folder `queries`, and the latest statements of this person.
import type { Answer } from "../contract/answer.ts";
import { formatDate } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { Action, IconAction, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { LoadProblem } from "../view/problem.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import type { DatabaseName } from "./database-frame.tsx";
import { databaseApi, savedApi } from "./paths.ts";

type Queries = Answer<"runtime", "GET /projects/{project}/databases/{database}/queries">;
type Query = Queries["items"][number];
type History = Answer<"runtime", "GET /projects/{project}/databases/{database}/history">;

const SHOWN_MAX = 50;

export function SqlSide(props: {
  name: DatabaseName;
  onChoose: (sql: string) => void;
  /** Another number loads the lists again. */
  revision: number;
}) {
  const { name, onChoose, revision } = props;
  const base = databaseApi(name.project, name.database);
  const queries = useLoad(`queries ${base} ${revision}`, async () =>
    callService<Queries>("runtime", `${base}/queries`),
  );
  const history = useLoad(`history ${base} ${revision}`, async () =>
    callService<History>("runtime", `${base}/history`),
  );
  const forget = async (query: string): Promise<void> => {
    await callService("runtime", savedApi(name.project, name.database, query), {
      method: "DELETE",
    });
    await queries.reload();
  };
  return (
    <>
      <Section title={t("Saved queries")}>
        <LoadProblem of={queries} />
        <ul class="plain-list">
          {(queries.data.value?.items ?? []).map((query) => (
            <li key={`${query.source} ${query.name}`}>
              <SavedQuery
                query={query}
                onChoose={onChoose}
                onForget={() => void attempt(async () => forget(query.name))}
              />
            </li>
          ))}
        </ul>
        {queries.data.value?.items.length === 0 && (
          <p class="lead">{t("Files queries/*.sql of the project are listed here as well.")}</p>
        )}
      </Section>
      <Section
        title={t("History")}
        note={t("your statements, without values of parameters")}
        action={<Action onClick={() => void history.reload()}>{t("Load again")}</Action>}
      >
        <ul class="plain-list">
          {(history.data.value?.items ?? []).slice(0, SHOWN_MAX).map(({ sql, at }) => (
            <li key={at + sql}>
              <button type="button" class="link history" title={sql} onClick={() => onChoose(sql)}>
                <small class="i3">{formatDate(at)}</small> <span class="mono">{sql}</span>
              </button>
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

function SavedQuery(props: {
  query: Query;
  onChoose: (sql: string) => void;
  onForget: () => void;
}) {
  const { query, onChoose, onForget } = props;
  const isOwn = query.source === "saved";
  return (
    <span class="saved-query">
      <button type="button" class="link" onClick={() => onChoose(query.sql)}>
        {query.name}
      </button>
      <small class="i3">{isOwn ? "" : "queries/"}</small>
      {isOwn && (
        <a
          class="link"
          href={`data:application/sql;charset=utf-8,${encodeURIComponent(query.sql)}`}
          download={`${query.name}.sql`}
        >
          {t("Download")}
        </a>
      )}
      {isOwn && (
        <IconAction
          icon="trash"
          label={t("Forget {name}", { name: query.name })}
          title={t("Forget")}
          blocked={undefined}
          onClick={onForget}
        />
      )}
    </span>
  );
}
