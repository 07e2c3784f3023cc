// A repository that is open: its head, its snapshots, the lists of their files.
import { randomBytes } from "node:crypto";
import { BackupKey } from "../cipher.ts";
import { BackupError } from "../error.ts";
import {
  BACKUP_FORMAT,
  decodeManifest,
  encodeManifest,
  findPathProblem,
  MANIFEST_BYTES_MAX,
  type BackupFile,
  type BackupManifest,
} from "../manifest.ts";
import {
  decodeList,
  type FileEntry,
  HEAD_NAME,
  type HeadMark,
  nameSnapshot,
  type Piece,
  readHeadMark,
  readSnapshotId,
  readSnapshotMark,
  SNAPSHOT_FOLDER,
  type SnapshotMark,
} from "./format.ts";
import { RepositoryObjects } from "./objects.ts";
import type { RepositoryStorage } from "./storage.ts";

/** Whose repository is opened, and how. */
export interface RepositoryOptions {
  storage: RepositoryStorage;
  /** Repositories of other services are rejected. */
  service: string;
  /** Oldest and newest supported version of the service's files. */
  dataFormats: { oldest: number; newest: number };
  /** Passphrase of an encrypted repository. */
  passphrase?: string | undefined;
}

/** Options of a repository that may be new. */
export interface NewRepositoryOptions extends RepositoryOptions {
  /** Version of the service. */
  version: string;
  /** Identifies the data: a repository of another owner is rejected. */
  owner: string;
  nowMs: number;
}

/** A snapshot in a repository. */
export interface SavedSnapshot {
  id: string;
  manifest: BackupManifest;
  mark: SnapshotMark;
}

/** An open repository. */
export class Repository {
  readonly storage: RepositoryStorage;
  readonly objects: RepositoryObjects;
  readonly mark: HeadMark;
  /** Undefined if it is not encrypted, or the passphrase was not given. */
  readonly key: BackupKey | undefined;
  readonly isEncrypted: boolean;
  readonly #options: RepositoryOptions;

  private constructor(
    options: RepositoryOptions,
    head: BackupManifest,
    key: BackupKey | undefined,
  ) {
    this.#options = options;
    this.storage = options.storage;
    this.mark = readHeadMark(head, this.#place(HEAD_NAME));
    this.key = key;
    this.isEncrypted = head.encryption !== undefined;
    this.objects = new RepositoryObjects(options.storage, key);
  }

  /** Opens a repository. Rejects with BackupError if there is none, or it is of another service or a newer format. */
  static async open(options: RepositoryOptions): Promise<Repository> {
    const { storage, passphrase } = options;
    const place = `${storage.place}/${HEAD_NAME}`;
    const bytes = await storage.read(HEAD_NAME, MANIFEST_BYTES_MAX);
    if (bytes === undefined) {
      throw new BackupError(`${storage.place} has no ${HEAD_NAME}: not a repository`);
    }
    const head = decodeManifest(bytes, place);
    requireService(options, head, place);
    const key =
      head.encryption === undefined || passphrase === undefined
        ? undefined
        : await BackupKey.open(passphrase, head.encryption);
    const repository = new Repository(options, head, key);
    repository.#requireSealed(head, place);
    return repository;
  }

  /** Opens a repository, or begins one where there is nothing. The caller has its lock. */
  static async openOrCreate(options: NewRepositoryOptions): Promise<Repository> {
    const { storage, passphrase, owner } = options;
    if ((await storage.measure(HEAD_NAME)) === undefined) await createRepository(options);
    const repository = await Repository.open(options);
    if (repository.mark.owner !== owner) {
      throw new BackupError(`${storage.place} has the backups of another ${options.service}`);
    }
    if (repository.isEncrypted === (passphrase !== undefined)) return repository;
    throw new BackupError(
      repository.isEncrypted
        ? `${storage.place} is encrypted: a passphrase is required`
        : `${storage.place} is not encrypted: choose a new folder for encrypted backups`,
    );
  }

  /** The ids of all snapshots, the oldest first. */
  async listIds(): Promise<string[]> {
    const ids: string[] = [];
    for await (const name of this.storage.list(SNAPSHOT_FOLDER)) {
      const id = readSnapshotId(name);
      if (id === undefined) throw new BackupError(`${this.#place(name)}: not a snapshot`);
      ids.push(id);
    }
    return ids.toSorted();
  }

  /** A snapshot; the newest one without `id`. Rejects with BackupError if it is missing or damaged. */
  async load(id?: string): Promise<SavedSnapshot> {
    const wanted = id ?? (await this.listIds()).at(-1);
    if (wanted === undefined) throw new BackupError(`${this.storage.place} has no snapshots`);
    const name = nameSnapshot(wanted);
    const place = this.#place(name);
    const isId = readSnapshotId(name) !== undefined;
    const bytes = isId ? await this.storage.read(name, MANIFEST_BYTES_MAX) : undefined;
    if (bytes === undefined) {
      throw new BackupError(`${this.storage.place} has no snapshot ${wanted}`);
    }
    const manifest = decodeManifest(bytes, place);
    requireService(this.#options, manifest, place);
    const mark = readSnapshotMark(manifest, place);
    if (mark.repository !== this.mark.repository) {
      throw new BackupError(`${place}: belongs to another repository`);
    }
    if ((manifest.encryption !== undefined) !== this.isEncrypted) {
      throw new BackupError(`${place}: is not encrypted as its repository is`);
    }
    this.#requireSealed(manifest, place);
    return { id: wanted, manifest, mark };
  }

  /** The files of a snapshot, page by page. */
  async *readLists({ manifest }: SavedSnapshot): AsyncGenerator<FileEntry[]> {
    for (const page of manifest.files) yield await this.readList(page);
  }

  /** The files in one page of a list. */
  async readList({ path, size, sha256 }: BackupFile): Promise<FileEntry[]> {
    const bytes = await this.objects.get(path, toListPiece(path, size, sha256, this.isEncrypted));
    const entries = decodeList(bytes, this.#place(path));
    for (const entry of entries) {
      const problem = findPathProblem(entry.path);
      if (problem !== undefined) throw new BackupError(`${this.#place(path)}: ${problem}`);
    }
    return entries;
  }

  /** Adds the manifest of a snapshot whose objects are durable. */
  async addSnapshot(id: string, manifest: BackupManifest): Promise<void> {
    const sealed = this.key === undefined ? manifest : this.key.seal(manifest);
    await this.storage.write(nameSnapshot(id), encodeManifest(sealed));
    await this.storage.flush();
  }

  #requireSealed(manifest: BackupManifest, place: string): void {
    const { encryption } = manifest;
    if (encryption === undefined || this.key === undefined) return;
    this.key.requireSealed({ ...manifest, encryption }, place);
  }

  #place(name: string): string {
    return `${this.storage.place}/${name}`;
  }
}

/** The path of a page of a list in a manifest, which has the hash of its plain bytes. */
export function nameList(plain: string): string {
  return `lists/${plain}`;
}

/** A page of a list as a piece. Its plain size is not stored: a page is shorter than a piece. */
export function toListPiece(
  path: string,
  size: number,
  sha256: string,
  isEncrypted: boolean,
): Piece {
  if (!isEncrypted) return { bytes: size, sha256 };
  return {
    bytes: measurePlain(size),
    sha256,
    stored: size,
    plain: path.slice("lists/".length),
  };
}

const CIPHER_HEAD_BYTES = 24;
const CIPHER_PIECE_BYTES = 1024 * 1024;
const CIPHER_TAG_BYTES = 16;

// The size before encryption: each piece has a tag.
function measurePlain(stored: number): number {
  const body = stored - CIPHER_HEAD_BYTES;
  return body - CIPHER_TAG_BYTES * Math.ceil(body / (CIPHER_PIECE_BYTES + CIPHER_TAG_BYTES));
}

async function createRepository(options: NewRepositoryOptions): Promise<void> {
  const { storage, service, version, owner, nowMs, passphrase } = options;
  for await (const name of storage.list(SNAPSHOT_FOLDER)) {
    throw new BackupError(`${storage.place} has ${name}, but no ${HEAD_NAME}: it is damaged`);
  }
  const mark: HeadMark = { repository: randomBytes(16).toString("hex"), owner };
  const head: BackupManifest = {
    format: BACKUP_FORMAT,
    service,
    service_version: version,
    data_format: options.dataFormats.newest,
    created_at: new Date(nowMs).toISOString(),
    mark,
    files: [],
  };
  const key = passphrase === undefined ? undefined : await BackupKey.create(passphrase);
  await storage.write(HEAD_NAME, encodeManifest(key === undefined ? head : key.seal(head)));
  await storage.flush();
}

function requireService(
  { service, dataFormats: { oldest, newest } }: RepositoryOptions,
  manifest: BackupManifest,
  place: string,
): void {
  if (manifest.service !== service) {
    throw new BackupError(`${place} is of ${manifest.service}, not of ${service}`);
  }
  const { data_format: found, service_version: version } = manifest;
  if (found >= oldest && found <= newest) return;
  throw new BackupError(
    `${place} was written by ${service} ${version} with data format ${found}; this version reads ${oldest} to ${newest}`,
  );
}
