// The frame of a database's pages: its name, and tabs for tables, statements and the audit log.
import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import type { Answer } from "../contract/answer.ts";
import { segment } from "../api/api.ts";
import { callService, may } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { TabbedPage } from "../view/tabbed-page.tsx";
import { t } from "../words/words.ts";
import { auditPath, dataPath, projectPath, sqlPath } from "./paths.ts";

/** True while this tab may change rows. */
export const isUnlocked = signal(false);

/** Names a database. */
export interface DatabaseName {
  readonly project: string;
  readonly database: string;
}

/** Names a table. */
export interface TableName extends DatabaseName {
  readonly table: string;
}

/** Kind of a database, and whether rows may be changed. */
export interface DatabaseState {
  readonly kind: "sqlite" | "postgres";
  readonly mode: "read" | "edit";
}

/** Loads the state of a database; undefined until it is known. */
export function useDatabase({ project, database }: DatabaseName): DatabaseState | undefined {
  const loaded = useLoad(`database ${project}`, async () =>
    callService<Answer<"runtime", "GET /projects/{project}/databases">>(
      "runtime",
      `/projects/${segment(project)}/databases`,
    ),
  );
  const found = loaded.data.value;
  const kind = found?.items.find(({ name }) => name === database)?.kind;
  return kind === undefined ? undefined : { kind, mode: found!.mode };
}

/** True if the session has a right to the data of a project. */
export function mayUse(right: "read" | "edit" | "query", project: string): boolean {
  return may(`data:${right}`) || may(`data:${right}:${project}`);
}

export function DatabaseFrame(
  props: DatabaseName & {
    tab: "data" | "sql" | "audit";
    table?: string;
    mode: "read" | "edit" | undefined;
    actions?: ComponentChildren;
    children: ComponentChildren;
  },
) {
  const { project, database, tab, table, mode, children } = props;
  useCrumbs([
    { label: t("Projects"), to: "/projects" },
    { label: project, to: projectPath(project) },
    { label: database, to: dataPath(project, database) },
    ...(table === undefined ? [] : [{ label: table }]),
  ]);
  const data =
    table === undefined ? dataPath(project, database) : dataPath(project, database, table);
  return (
    <TabbedPage
      name={table ?? database}
      tags={
        isUnlocked.value && mode === "edit" ? (
          <span class="tag warn">{t("unlocked")}</span>
        ) : undefined
      }
      actions={
        <>
          {props.actions}
          <Lock project={project} mode={mode} />
        </>
      }
      label={t("Pages of the database")}
      tabs={[
        { to: data, label: t("Tables") },
        { to: sqlPath(project, database), label: t("SQL") },
        { to: auditPath(project, database), label: t("Audit") },
      ]}
      tab={tab}
      notice={
        isUnlocked.value && mode === "edit" ? (
          <p class="banner" role="status">
            {t(
              "Rows can be changed in this tab. The project's code does not run with a change; triggers of the database do.",
            )}
          </p>
        ) : undefined
      }
    >
      {children}
    </TabbedPage>
  );
}

/** The reason why rows of a project cannot be unlocked; undefined if they can. */
export function explainBlockedLock(
  project: string,
  mode: "read" | "edit" | undefined,
): string | undefined {
  if (mode === "read") return t("PLATFORM_RUNTIME_CONSOLE_DATA=edit allows changes here");
  if (mayUse("edit", project)) return undefined;
  return t("Requires the permission {name}", { name: "data:edit" });
}

function Lock({ project, mode }: { project: string; mode: "read" | "edit" | undefined }) {
  const blocked = explainBlockedLock(project, mode);
  return (
    <Action
      onClick={() => {
        isUnlocked.value = !isUnlocked.value;
      }}
      blocked={blocked}
      icon="edit"
    >
      {isUnlocked.value && blocked === undefined ? t("Lock") : t("Unlock")}
    </Action>
  );
}
