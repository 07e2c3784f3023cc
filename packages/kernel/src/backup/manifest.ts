// `backup.json`: the manifest of a backup folder.
import { createHash } from "node:crypto";
import { z } from "zod";
import {
  type BackupEncryption,
  KEY_BYTES,
  SALT_BYTES,
  SCRYPT_BLOCK,
  SCRYPT_COST,
} from "./cipher.ts";
import { BackupError } from "./error.ts";

/** Version of the folder format that is written. 2 added encryption and parts. */
export const BACKUP_FORMAT = 2;
const FORMATS = [1, BACKUP_FORMAT] as const;
/** File name of the manifest; it is written last. */
export const MANIFEST_NAME = "backup.json";
/** Folder of the files, inside the backup folder. */
export const DATA_FOLDER = "data";
/** Maximum size of a manifest in bytes. */
export const MANIFEST_BYTES_MAX = 256 * 1024 * 1024;
/** Maximum number of files in a backup. */
export const FILES_MAX = 1_000_000;

const PARTS_MAX = 16;
const PATH_LENGTH_MAX = 1024;
const SEGMENT_LENGTH_MAX = 255;

const hashText = z.string().regex(/^[0-9a-f]{64}$/);

const fileSchema = z.strictObject({
  path: z.string(),
  size: z.int().min(0),
  sha256: hashText,
});

const partSchema = z.strictObject({
  // Names of folders beside `data`.
  folder: z.string().regex(/^(?!data$)[a-z][a-z0-9-]{0,62}$/),
  service: z.string().min(1).max(64),
  manifest_sha256: hashText,
});

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));

const encryptionSchema: z.ZodType<BackupEncryption> = z.strictObject({
  cipher: z.literal("aes-256-gcm-stream"),
  kdf: z.literal("scrypt"),
  cost: z.literal(SCRYPT_COST),
  block_size: z.literal(SCRYPT_BLOCK),
  salt: hex(SALT_BYTES),
  check: hex(KEY_BYTES),
  mac: z.union([hex(KEY_BYTES), z.literal("")]),
});

// Decoded members have this order, which the checksums of manifests depend on.
const manifestSchema = z.strictObject({
  format: z.literal([...FORMATS]),
  service: z.string().min(1).max(64),
  service_version: z.string().min(1).max(64),
  data_format: z.int().min(0),
  created_at: z.iso.datetime(),
  mark: z.json(),
  parts: z.array(partSchema).max(PARTS_MAX).exactOptional(),
  encryption: encryptionSchema.exactOptional(),
  files: z.array(fileSchema).max(FILES_MAX),
});

/**
 * One file of a backup: its path below `data/` with `/` as separator, its size in bytes and its SHA-256 in hex, both of
 * the stored bytes.
 */
export type BackupFile = z.infer<typeof fileSchema>;

/** A backup of a service in a folder inside of another backup. */
export type BackupPart = z.infer<typeof partSchema>;

/**
 * The contents of `backup.json`. `mark` is the service's description of the point up to which the backup is complete.
 * `data_format` is the version of the service's files.
 */
export type BackupManifest = z.infer<typeof manifestSchema>;

/** Encodes a manifest; its last member is the SHA-256 of the others, encoded without spaces. */
export function encodeManifest(manifest: BackupManifest): Buffer {
  const manifest_sha256 = hashManifest(manifest);
  const bytes = Buffer.from(`${JSON.stringify({ ...manifest, manifest_sha256 }, undefined, 1)}\n`);
  if (bytes.length > MANIFEST_BYTES_MAX) throw new BackupError("the manifest is too large");
  return bytes;
}

/** Decodes and checks a manifest. Throws BackupError if it is damaged, of another format, or names unsafe paths. */
export function decodeManifest(bytes: Buffer, place: string): BackupManifest {
  const fail = (why: string) => new BackupError(`${place}: ${why}`);
  let document: unknown;
  try {
    document = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw fail("not JSON; the file is damaged");
  }
  if (typeof document !== "object" || document === null || !("format" in document)) {
    throw fail("not the manifest of a backup");
  }
  if (!FORMATS.some((format) => format === document.format)) {
    const format = JSON.stringify(document.format);
    throw fail(`backup format ${format}; this version reads formats ${FORMATS.join(" and ")}`);
  }
  const { manifest_sha256: expected, ...members } = document as Record<string, unknown>;
  if (expected !== hashManifest(members)) throw fail("the manifest does not match its checksum");
  const parsed = manifestSchema.safeParse(members);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw fail(`${issue?.path.join(".") ?? ""}: ${issue?.message ?? "not allowed"}`);
  }
  checkPaths(parsed.data.files, fail);
  return parsed.data;
}

/** Returns the SHA-256 (hex) of a manifest, by which other manifests refer to it. */
export function hashManifest(members: object): string {
  return createHash("sha256").update(JSON.stringify(members)).digest("hex");
}

/** Returns the reason why a backup cannot contain a path, or undefined. */
export function findPathProblem(path: string): string | undefined {
  if (path === "" || path.length > PATH_LENGTH_MAX) return "its length is not allowed";
  // Colons and backslashes are separators on Windows.
  // oxlint-disable-next-line no-control-regex -- control characters are refused
  if (/[\u0000-\u001f\u007f\\:]/.test(path)) return "it contains forbidden characters";
  for (const segment of path.split("/")) {
    if (segment === "" || segment === "." || segment === "..") return "it leaves the backup folder";
    if (segment.length > SEGMENT_LENGTH_MAX) return "a name in it is too long";
  }
  return undefined;
}

function checkPaths(files: readonly BackupFile[], fail: (why: string) => BackupError): void {
  const paths = new Set<string>();
  for (const { path } of files) {
    const problem = findPathProblem(path);
    if (problem !== undefined) throw fail(`path ${JSON.stringify(path)}: ${problem}`);
    if (paths.has(path)) throw fail(`path ${JSON.stringify(path)} is listed twice`);
    paths.add(path);
  }
}
