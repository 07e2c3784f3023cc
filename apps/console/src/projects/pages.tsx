// The pages of projects and their data.
import "./projects.css";
import { matchPath, path } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { ApiPage } from "./api-page.tsx";
import { AuditPage } from "./audit-page.tsx";
import { EnvironmentPage } from "./environment-page.tsx";
import { ProjectPage, ProjectsPage } from "./projects.tsx";
import { SqlPage } from "./sql-page.tsx";
import { TablePage } from "./table-page.tsx";
import { TablesPage } from "./tables.tsx";

/** The page of the current path. */
export default function ProjectPages() {
  useTrace(undefined);
  const current = path.value;
  const table = matchPath("/projects/:project/data/:database/:table", current);
  if (table !== undefined) {
    const { project = "", database = "", table: name = "" } = table;
    return <TablePage key={current} project={project} database={database} table={name} />;
  }
  for (const [kind, Page] of Object.entries({ data: TablesPage, sql: SqlPage, audit: AuditPage })) {
    const found = matchPath(`/projects/:project/${kind}/:database`, current);
    if (found === undefined) continue;
    const { project = "", database = "" } = found;
    return <Page key={current} project={project} database={database} />;
  }
  const api = matchPath("/projects/:project/api", current);
  if (api !== undefined) return <ApiPage key={current} project={api["project"]!} />;
  const environment = matchPath("/projects/:project/environment", current);
  if (environment !== undefined) {
    return <EnvironmentPage key={current} project={environment["project"]!} />;
  }
  const project = matchPath("/projects/:project", current);
  return project === undefined ? <ProjectsPage /> : <ProjectPage name={project["project"]!} />;
}
