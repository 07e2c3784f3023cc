// Addresses of the pages of projects.
import { segment } from "../api/api.ts";

/** The page of a project. */
export function projectPath(project: string): string {
  return `/projects/${segment(project)}`;
}

/** The page of a table; without one, the list of a database's tables. */
export function dataPath(project: string, database: string, table?: string): string {
  const base = `${projectPath(project)}/data/${segment(database)}`;
  return table === undefined ? base : `${base}/${segment(table)}`;
}

/** The page of a project's API. */
export function apiPath(project: string): string {
  return `${projectPath(project)}/api`;
}

/** The page of a project's variables. */
export function environmentPath(project: string): string {
  return `${projectPath(project)}/environment`;
}

/** The page of statements. */
export function sqlPath(project: string, database: string): string {
  return `${projectPath(project)}/sql/${segment(database)}`;
}

/** The page of the audit log. */
export function auditPath(project: string, database: string): string {
  return `${projectPath(project)}/audit/${segment(database)}`;
}

/** Path of a database in the runtime's API. */
export function databaseApi(project: string, database: string): string {
  return `/projects/${segment(project)}/databases/${segment(database)}`;
}

/** Path of a table in the runtime's API. */
export function tableApi(project: string, database: string, table: string): string {
  return `${databaseApi(project, database)}/tables/${segment(table)}`;
}

/** Path of a saved query in the runtime's API. */
export function savedApi(project: string, database: string, query: string): string {
  return `${databaseApi(project, database)}/queries/${segment(query)}`;
}
