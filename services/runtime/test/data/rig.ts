// The API of the data pages on databases of a test.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { PlatformError } from "@platform/kernel/errors";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, listenHttp, type Guard } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";
import { createDataAuditRoutes } from "../../src/api/data-audit-routes.ts";
import { createDataChangeRoutes } from "../../src/api/data-change-routes.ts";
import { createDataRoutes } from "../../src/api/data-routes.ts";
import { createQueryRoutes } from "../../src/api/query-routes.ts";
import { DataService, type DataServiceOptions } from "../../src/data/data-service.ts";
import { createHidden, HIDDEN_DEFAULT } from "../../src/data/hidden-columns.ts";

/** A response. */
export interface Answer {
  readonly status: number;
  // As JSON.parse returns it.
  readonly body: ReturnType<typeof JSON.parse>;
}

/** Scopes are the token, separated by commas; `operator` is the operator. */
const guard: Guard = ({ headers }) => {
  const token = headers.get("authorization")?.slice("Bearer ".length);
  if (token === undefined) throw new PlatformError("unauthorized", "A token is required.");
  if (token === "operator") return { kind: "operator" };
  const scope = token.split(",");
  return {
    kind: "user",
    claims: { exp: 0, sub: "u1", username: "ada", scope, roles: [], all: { sub: "u1" } },
  };
};

/** Options of {@link startData}. */
export interface DataRigOptions extends Partial<DataServiceOptions> {
  /** DATABASE_URL of the projects by name. */
  readonly urls?: Readonly<Record<string, string>>;
  /** Makes the databases of a project in its data folder. */
  readonly databases?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Starts the API of projects whose databases are made by statements. */
export async function startData(t: TestContext, options: DataRigOptions) {
  const folder = mkdtempSync(join(tmpdir(), "data-"));
  const { urls = {}, databases = {}, ...more } = options;
  const names = new Set([...Object.keys(urls), ...Object.keys(databases)]);
  const place = (project: string) => ({
    folder: join(folder, "source", project),
    dataFolder: join(folder, "projects", project),
    url: urls[project],
  });
  for (const name of names) {
    mkdirSync(place(name).dataFolder, { recursive: true });
    mkdirSync(place(name).folder, { recursive: true });
    for (const [file, sql] of Object.entries(databases[name] ?? {})) {
      const database = new DatabaseSync(join(place(name).dataFolder, `${file}.sqlite`));
      database.exec(`pragma journal_mode = wal; ${sql}`);
      database.close();
    }
  }
  const data = new DataService({
    findPlace: (project) => {
      if (names.has(project)) return place(project);
      throw new PlatformError("not_found", `no project ${project}`);
    },
    dataDir: folder,
    clock: systemClock,
    mode: "edit",
    isHidden: createHidden(HIDDEN_DEFAULT),
    keepsValues: false,
    ...more,
  });
  const listener = await serve(data, (name) => place(name).folder);
  t.after(async () => {
    await listener.close(0);
    await data.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const call = async (
    method: string,
    path: string,
    { json, token = "operator" }: { json?: unknown; token?: string } = {},
  ): Promise<Answer> => {
    const answer = await fetch(`${listener.url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(json === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.includes("json") === true;
    return { status: answer.status, body: isJson ? JSON.parse(text) : text };
  };
  return { data, call, place, folder };
}

function serve(data: DataService, findFolder: (project: string) => string) {
  const logger = createLogger({ service: "test", write: () => undefined });
  const api = createApi({
    service: "runtime",
    version: "1",
    routes: [
      ...createDataRoutes(data),
      ...createDataChangeRoutes(data),
      ...createQueryRoutes(data, findFolder),
      ...createDataAuditRoutes(data),
    ],
    guard,
    health: new HealthRegistry({ service: "runtime", version: "1" }),
    metrics: new MetricRegistry(),
    logger,
    tracer: createTracer({ ids: createIdSource(), clock: systemClock }),
    clock: systemClock,
  });
  return listenHttp({
    address: { host: "127.0.0.1", port: 0 },
    fetch: (request, bindings) => api.fetch(request, bindings),
  });
}
