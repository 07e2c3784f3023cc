// `platform user list`, `bucket list`, `app list`: what there is, page by page.
import type { ApiClient } from "../client/api-client.ts";
import { listApplications } from "../client/application.ts";
import { connectIdentity, connectStorage } from "../client/connect.ts";
import { findTarget } from "../client/target.ts";
import { formatTextTable } from "./text-table.ts";

const PAGE = 200;

/** Options of the lists. */
export interface ListOptions {
  data: string;
  /** One JSON document a line instead of a table. */
  json: boolean;
}

/** Prints the users. */
export async function runUserList({ data, json }: ListOptions): Promise<void> {
  const identity = await connectIdentity(await findTarget(data));
  await print(json, ["user", "email", "name", "state"], readPages(identity, "users", "users"), [
    (user) => showValue(user["username"]),
    (user) => showValue(user["email"]),
    (user) => showValue(user["name"]),
    (user) => (user["disabled"] === true ? "disabled" : "active"),
  ]);
}

export async function runBucketList({ data, json }: ListOptions): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const buckets = readPages(storage, "buckets?detail=true", "items");
  await print(json, ["bucket", "objects", "bytes"], buckets, [
    (bucket) => showValue(bucket["name"]),
    (bucket) => showValue(bucket["objects"]),
    (bucket) => showValue(bucket["bytes"]),
  ]);
}

/** Prints the applications that `app add` created. */
export async function runAppList({ data, json }: ListOptions): Promise<void> {
  const identity = await connectIdentity(await findTarget(data));
  await print(json, ["application", "client", "users return to"], listApplications(identity), [
    (app) => app.name,
    (app) => showValue(app.client_id),
    (app) => showValue(app.redirect_uris.join(" ")),
  ]);
}

/** A member of a list. */
export type Item = Readonly<Record<string, unknown>>;

/** Prints the items at a path page by page, in lines of JSON or as a table of columns. */
export async function printPages(
  json: boolean,
  header: readonly string[],
  api: ApiClient,
  path: string,
  columns: readonly ((item: Item) => string)[],
): Promise<void> {
  await print(json, header, readPages(api, path, "items"), columns);
}

async function* readPages(api: ApiClient, path: string, member: string): AsyncGenerator<Item> {
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams({
      limit: String(PAGE),
      ...(cursor === null ? {} : { cursor }),
    });
    const separator = path.includes("?") ? "&" : "?";
    const page = await api.call(
      "GET",
      `${path.startsWith("/") ? "" : "/api/v1/"}${path}${separator}${query.toString()}`,
    );
    yield* page[member] as Item[];
    cursor = (page["next_cursor"] as string | null | undefined) ?? null;
  } while (cursor !== null);
}

/** Lists of any length are printed in parts: columns are aligned within one. */
async function print<One>(
  json: boolean,
  header: readonly string[],
  items: AsyncIterable<One>,
  columns: readonly ((item: One) => string)[],
): Promise<void> {
  process.stdout.on("error", () => process.exit(0));
  let rows: string[][] = [];
  let isFirst = true;
  const flush = (): void => {
    const table = formatTextTable([[...header], ...rows]);
    process.stdout.write(isFirst ? table : table.slice(table.indexOf("\n") + 1));
    isFirst = false;
    rows = [];
  };
  for await (const item of items) {
    if (json) process.stdout.write(`${JSON.stringify(item)}\n`);
    else rows.push(columns.map((read) => read(item)));
    if (rows.length === PAGE) flush();
  }
  if (!json && (isFirst || rows.length > 0)) flush();
}

/** The text of a member. Names are data of people: no control character reaches the terminal. */
export function showValue(value: unknown): string {
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  return text.replaceAll(/\p{Cc}/gu, "?");
}
