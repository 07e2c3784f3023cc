// `platform project env`, `set` and `unset`: the variables of a project of the running platform.
import { connectPlatform } from "../client/connect.ts";
import { findTarget } from "../client/target.ts";
import { VALUE_BYTES_MAX } from "../projects/own-variables.ts";
import { formatTextTable } from "./text-table.ts";

/** A variable as the platform describes it. */
interface Listed {
  name: string;
  source: "platform" | "own" | "file" | "shell";
  secret: boolean | null;
  value: string | null;
  set_by: string | null;
}

/** A variable to change. */
interface VariableOptions {
  data: string;
  project: string;
  variable: string;
}

const SOURCES: Readonly<Record<Listed["source"], string>> = {
  platform: "the platform",
  own: "set here",
  file: "the environment file",
  shell: "the shell that started it",
};

/** Prints the names as a table; values only of those that are no secrets. */
export async function runProjectEnv(data: string, project: string): Promise<void> {
  const platform = connectPlatform(await findTarget(data));
  const found = (await platform.call("GET", pathOf(project))) as unknown as {
    items: Listed[];
    restart_needed: boolean;
  };
  const rows = found.items.map(({ name, source, secret, value, set_by: by }) => [
    name,
    value ?? (secret === true ? "secret" : ""),
    by === null ? SOURCES[source] : `${SOURCES[source]} by ${by}`,
  ]);
  process.stdout.write(formatTextTable([["variable", "value", "set by"], ...rows]));
  if (found.restart_needed) {
    process.stdout.write(
      `\n${project} runs with earlier variables: platform project restart ${project}\n`,
    );
  }
}

/** Sets a variable to the standard input, without a line end at its end: arguments are visible to others on the machine. */
export async function runProjectSet(options: VariableOptions & { plain: boolean }): Promise<void> {
  const { data, project, variable, plain } = options;
  if (process.stdin.isTTY) process.stderr.write("value, ended by ctrl-d: ");
  const value = (await readInput()).replace(/\r?\n$/, "");
  const platform = connectPlatform(await findTarget(data));
  await platform.call("PUT", pathOf(project, variable), { value, secret: !plain });
  process.stdout.write(
    `${variable} is set from the next start: platform project restart ${project}\n`,
  );
}

/** Removes a variable that was set for the project; the one of its file or shell, if any, takes its place at the next start. */
export async function runProjectUnset({ data, project, variable }: VariableOptions): Promise<void> {
  const platform = connectPlatform(await findTarget(data));
  await platform.call("DELETE", pathOf(project, variable));
  process.stdout.write(
    `${variable} is removed from the next start: platform project restart ${project}\n`,
  );
}

async function readInput(): Promise<string> {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (Buffer.byteLength(text) > VALUE_BYTES_MAX)
      throw new Error("the value is longer than 32 KiB");
  }
  return text;
}

function pathOf(project: string, variable?: string): string {
  const path = `/api/v1/projects/${encodeURIComponent(project)}/environment`;
  return variable === undefined ? path : `${path}/${encodeURIComponent(variable)}`;
}
