// Buckets and objects in the API of storage, and their addresses in the console.
import type { Answer } from "../contract/answer.ts";
import { segment, withQuery } from "../api/api.ts";
import { api, callService } from "../session/session.ts";
import type { FolderPage } from "./folder-list.ts";

/** A bucket with its use. */
export type Bucket = Answer<"vault", "GET /buckets/{bucket}">;

/** An object, or one of its versions. */
export type StoredObject = Answer<"vault", "GET /buckets/{bucket}/objects">["items"][number];

/** A page of a listing. */
type ObjectPage = FolderPage<StoredObject>;

/** Characters that are invisible, or that change the order of others, but for those that join letters and emoji. */
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A key, or a part of it, as it is shown: `photo\u202egpj.exe` must not look like a picture. */
export function showKey(key: string): string {
  return key.replaceAll(
    UNSEEN,
    (character) => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** Path of a bucket in the API. */
export function bucketPath(bucket: string, rest = ""): string {
  return `/buckets/${segment(bucket)}${rest}`;
}

/** Path of an object in the API. The key is in the query: paths cannot express all keys. */
export function objectPath(bucket: string, key: string, version?: string): string {
  return withQuery(bucketPath(bucket, "/object"), { key, version });
}

/** Address of an object's bytes, for downloads and previews. */
export function objectUrl(bucket: string, key: string, version?: string): string {
  return api("vault", objectPath(bucket, key, version));
}

/** All buckets that the session may see; at most 1 000. */
export async function listBuckets(signal: AbortSignal): Promise<Bucket[]> {
  const found: Bucket[] = [];
  let cursor: string | undefined;
  do {
    const query = { detail: true, limit: 200, cursor };
    const page = await callService<Exclude<Answer<"vault", "GET /buckets">, string[]>>(
      "vault",
      withQuery("/buckets", query),
      { signal },
    );
    found.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && found.length < BUCKETS_MAX);
  return found;
}

const BUCKETS_MAX = 1_000;

/** A page of objects below a prefix; folders end with `/`. */
export function listObjects(
  bucket: string,
  query: {
    prefix: string;
    delimiter?: string;
    cursor?: string | undefined;
    versions?: boolean;
    /** 1 to 1 000, which is the default. */
    limit?: number;
  },
  signal?: AbortSignal,
): Promise<ObjectPage> {
  const path = withQuery(bucketPath(bucket, "/objects"), query);
  return callService("vault", path, signal === undefined ? {} : { signal });
}

/** Deletes up to 1 000 objects or versions; returns those that remain. */
export async function deleteObjects(
  bucket: string,
  objects: readonly { key: string; version?: string }[],
): Promise<{ key: string; message: string }[]> {
  const { errors } = await callService<Answer<"vault", "POST /buckets/{bucket}/delete">>(
    "vault",
    bucketPath(bucket, "/delete"),
    { method: "POST", json: { objects } },
  );
  return errors;
}

/** Address of a folder in the console. Prefixes that a path cannot express are in the query. */
export function folderHref(bucket: string, prefix = ""): string {
  const parts = prefix.split("/").slice(0, -1);
  const isPlain = prefix === "" || (prefix.endsWith("/") && parts.every(isPlainPart));
  const base = `/storage/buckets/${encodeURIComponent(bucket)}`;
  if (!isPlain) return withQuery(base, { prefix });
  return [base, ...parts.map(encodeURIComponent)].join("/");
}

function isPlainPart(part: string): boolean {
  return part !== "" && part !== "." && part !== "..";
}

/** Folders of a prefix with their names, from the outermost: `eu/de/` is `eu/` and `eu/de/`. */
export function splitPrefix(prefix: string): { name: string; prefix: string }[] {
  const names = prefix.split("/").slice(0, -1);
  return names.map((name, index) => ({
    name,
    prefix: `${names.slice(0, index + 1).join("/")}/`,
  }));
}
