// `platform project list`, `add`, `remove`, `restart`: the projects of the running platform.
import { resolve } from "node:path";
import { connectPlatform } from "../client/connect.ts";
import { findTarget } from "../client/target.ts";
import { formatFolder } from "../data-folder/data-folder.ts";
import { PROTOCOL } from "../watch/messages.ts";
import { formatTextTable } from "./text-table.ts";

const PATH = "/api/v1/projects";

/** A project as the platform describes it. */
interface Listed {
  name: string;
  folder: string;
  kind: "own" | "kept" | "joined";
  state: string;
  detail: string;
  url: string;
  rules: string[];
  cuts: string[];
  /** Missing from platforms of earlier versions. */
  reload_failure?: string;
}

/** Meanings of the kinds, for people. */
const KINDS: Readonly<Record<Listed["kind"], string>> = {
  own: "of the platform's folder",
  kept: "kept",
  joined: "until its terminal leaves",
};

/** Prints the projects as a table, or one JSON document a line. */
export async function runProjectList({ data, json }: { data: string; json: boolean }) {
  const platform = connectPlatform(await findTarget(data));
  const { items } = (await platform.call("GET", PATH)) as unknown as { items: Listed[] };
  if (json) {
    for (const item of items) process.stdout.write(`${JSON.stringify(item)}\n`);
    return;
  }
  const rows = items.map(({ name, state, url, kind, folder }) => [
    name,
    state,
    url,
    KINDS[kind],
    formatFolder(folder),
  ]);
  process.stdout.write(
    formatTextTable([["project", "state", "address", "runs", "folder"], ...rows]),
  );
  for (const { name, rules, cuts } of items) {
    if (rules.length > 0) process.stdout.write(`\n${name}, rules at the gateway:\n`);
    for (const rule of rules) process.stdout.write(`  ${rule}\n`);
    if (cuts.length > 0) process.stdout.write(`\n${name}, changed by the operator:\n`);
    for (const cut of cuts) process.stdout.write(`  ${cut}\n`);
  }
  for (const { name, detail, state } of items) {
    if (detail !== "" && state !== "running") process.stdout.write(`\n${name}: ${detail}\n`);
  }
  for (const { name, reload_failure: failure = "" } of items) {
    if (failure === "") continue;
    process.stdout.write(`\n${name}, the newest version does not start:\n`);
    for (const line of failure.trimEnd().split("\n")) process.stdout.write(`  ${line}\n`);
  }
}

/** Options of {@link runProjectAdd}. */
export interface ProjectAddOptions {
  data: string;
  folder: string;
  environmentFile: string | undefined;
}

/** Adds a project; it has started, or could not be added, when the returned promise settles. */
export async function runProjectAdd({ data, folder, environmentFile }: ProjectAddOptions) {
  const platform = connectPlatform(await findTarget(data));
  const body = {
    folder: resolve(folder),
    protocol: PROTOCOL,
    ...(environmentFile === undefined ? {} : { environment_file: resolve(environmentFile) }),
  };
  const added = (await platform.call("POST", PATH, body)) as unknown as Listed & {
    notes: string[];
  };
  process.stdout.write(`${added.name} added: ${added.url}\n`);
  for (const note of added.notes) process.stdout.write(`  ${note}\n`);
}

/** Options of {@link runProjectRemove}. */
export interface ProjectRemoveOptions {
  data: string;
  name: string;
  /** True if its databases are deleted as well. */
  dataToo: boolean;
}

/** Stops a project that joined or is kept, and prints where its databases are. */
export async function runProjectRemove({ data, name, dataToo }: ProjectRemoveOptions) {
  const target = await findTarget(data);
  const query = dataToo ? "?data=true" : "";
  await connectPlatform(target).call("DELETE", `${PATH}/${encodeURIComponent(name)}${query}`);
  const kept = dataToo
    ? "and so are its databases"
    : `its databases are kept in ${formatFolder(resolve(data, "projects", name))}`;
  process.stdout.write(`${name} removed; ${kept}\n`);
}

/** Begins to restart a project. */
export async function runProjectRestart(data: string, name: string) {
  const platform = connectPlatform(await findTarget(data));
  await platform.call("POST", `${PATH}/${encodeURIComponent(name)}/restart`, {});
  process.stdout.write(`${name} restarts\n`);
}
