// Tables and saved queries of a project's databases, on its page: each is one click away.
import { withQuery } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { href } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { t } from "../words/words.ts";
import { mayUse } from "./database-frame.tsx";
import { dataPath, databaseApi, sqlPath } from "./paths.ts";
import { loadTables } from "./tables.tsx";

type Queries = Answer<"runtime", "GET /projects/{project}/databases/{database}/queries">;

/** Each database that is looked at has a process for a minute: those of more are on their own pages. */
const DATABASES_MAX = 3;
const SHOWN_MAX = 12;

/** The contents of the first databases that the person may read. */
export function DatabaseContents(props: { project: string; databases: readonly string[] }) {
  const { project, databases } = props;
  if (!mayUse("read", project)) return null;
  return databases
    .slice(0, DATABASES_MAX)
    .map((database) => <Contents key={database} project={project} database={database} />);
}

function Contents(name: { project: string; database: string }) {
  const { project, database } = name;
  const tables = useLoad(`tables ${project} ${database}`, async () => loadTables(name)).data.value;
  const queries = useLoad(`queries ${project} ${database}`, async () =>
    mayUse("query", project)
      ? (await callService<Queries>("runtime", `${databaseApi(project, database)}/queries`)).items
      : [],
  ).data.value;
  return (
    <>
      <Links
        title={t("Tables of {name}", { name: database })}
        all={dataPath(project, database)}
        links={(tables ?? []).map((table) => [table.name, dataPath(project, database, table.name)])}
      />
      <Links
        title={t("Saved queries of {name}", { name: database })}
        all={sqlPath(project, database)}
        links={(queries ?? []).map((query) => [
          query.name,
          withQuery(sqlPath(project, database), { query: query.name, from: query.source }),
        ])}
      />
    </>
  );
}

function Links(props: {
  title: string;
  all: string;
  links: readonly (readonly [label: string, to: string])[];
}) {
  const { title, all, links } = props;
  if (links.length === 0) return null;
  return (
    <Section title={title}>
      <p class="link-line mono">
        {links.slice(0, SHOWN_MAX).map(([label, to]) => (
          <a key={to} class="link" href={href(to)}>
            {label}
          </a>
        ))}
        {links.length > SHOWN_MAX && (
          <a class="link" href={href(all)}>
            {t("all {n}", { n: links.length })}
          </a>
        )}
      </p>
    </Section>
  );
}
