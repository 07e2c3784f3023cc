// (a) The same small application on the service API, by hand on Hono, and on Fastify.
import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { REQUEST_COLUMNS, runContenders, type Contender } from "../../harness/contest.ts";
import { startPinned } from "../../harness/process.ts";

interface Application {
  readonly name: string;
  readonly isOurs: boolean;
  readonly file: string;
  readonly version: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const APPLICATIONS: readonly Application[] = [
  {
    name: "service",
    isOurs: true,
    file: "service-server.ts",
    version: "",
    env: { PLATFORM_SERVICE_LOG_LEVEL: "warn" },
  },
  { name: "service with request log", isOurs: true, file: "service-server.ts", version: "" },
  { name: "Hono", isOurs: false, file: "hono-server.ts", version: readVersion("hono") },
  {
    name: "Hono with request log",
    isOurs: false,
    file: "hono-server.ts",
    version: readVersion("hono"),
    args: ["log"],
  },
  { name: "Fastify", isOurs: false, file: "fastify-server.ts", version: readVersion("fastify") },
];
const START_MS = 60_000;
const JSON_BODY = JSON.stringify({ text: "a note of some length, as they are written by people" });

/** A GET with a parameter and a query, answered with JSON. */
export const read: BenchCase = createCase("read", "GET of a small JSON document", {
  path: "/notes/7?lang=de",
});

/** A POST of JSON, answered with JSON. */
export const write: BenchCase = createCase("write", "POST of a small JSON document", {
  path: "/notes",
  json: JSON_BODY,
});

function createCase(
  name: string,
  title: string,
  { path, json }: { path: string; json?: string },
): BenchCase {
  return {
    name,
    title,
    run: async (context) => {
      await using workspace = new Workspace();
      const contenders: Contender[] = [];
      for (const application of APPLICATIONS) {
        const { origin, pid } = await start(context, workspace, application);
        const { name: label, isOurs, version } = application;
        const url = `${origin}${path}`;
        const base = { name: label, isOurs, version, url, pid };
        contenders.push(json === undefined ? base : { ...base, json });
      }
      return {
        work: `${json === undefined ? "GET" : "POST"} ${path}, 32 connections, one core, Node. The service has metrics, trace context and limits in all rows, and no line of code for them.`,
        columns: REQUEST_COLUMNS,
        rows: await runContenders(context, workspace, contenders),
        ratioColumns: ["cpuUs"],
        goals: [
          { column: "cpuUs", against: "Hono", ours: ["service"], atMost: 1 },
          {
            column: "cpuUs",
            against: "Hono with request log",
            ours: ["service with request log"],
            atMost: 1,
          },
        ],
      };
    },
  };
}

async function start(
  context: BenchContext,
  workspace: Workspace,
  { name, file, args = [], env = {} }: Application,
): Promise<{ origin: string; pid: number }> {
  const port = await findFreePort();
  const path = new URL(`../servers/${file}`, import.meta.url).pathname;
  const started = workspace.keep(
    startPinned({
      name,
      command: process.execPath,
      args: [path, String(port), ...args],
      cores: context.cores.test,
      env: { NODE_ENV: "production", PLATFORM_LOG_FORMAT: "json", ...env },
    }),
  );
  await awaitPort(started, port, START_MS);
  return { origin: `http://127.0.0.1:${port}`, pid: started.pid };
}

function readVersion(name: string): string {
  const file = findPackageJSON(name, import.meta.url)!;
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
