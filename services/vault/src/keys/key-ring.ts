// All keys of the store: those of SSE-S3, named keys, and those that seal its secrets, in one sealed file.
import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "@platform/kernel/time";
import { DirectoryFile, type DirectoryDamage } from "../access/directory-file.ts";
import { deriveBoxKey, identifyStore } from "../access/secret-box.ts";
import type { Kek, KeyProvider, KeyRotation, NamedKeys } from "../blob/encryption.ts";
import { StoreError } from "../model/store-error.ts";
import { DEFAULT_ALIAS, formatKeyArn, parseKeyReference } from "./key-name.ts";
import { makeKey, type MasterSource } from "./master-key.ts";
import {
  type KeyContent,
  type KeyVersion,
  type MasterKey,
  identifyMaster,
  type NamedKeyRecord,
  openContent,
  sealContent,
  type SealedContent,
  sealedSchema,
} from "./sealed-content.ts";
import { deriveStorageKey } from "./storage-key.ts";
import type { SecretKeys } from "./secret-keys.ts";

const KEYS_MAX = 1_000;
/** Versions of a key that may wait to be replaced. */
const VERSIONS_MAX = 100;
/** Keys of secrets that may wait until nothing is sealed with them. */
const BOXES_MAX = 100;
const DAY_MS = 86_400_000;
const WHAT = "the keys of encrypted objects";

/** Options of {@link KeyRing}. */
export interface KeyRingOptions {
  path: string;
  master: MasterSource;
  clock: Clock;
  /** Keys in a secret service; without it they are refused. */
  secrets?: SecretKeys | undefined;
  /** Called for each copy of the file that was damaged; the other one was used. */
  onDamage?: (damage: DirectoryDamage) => void;
}

/** A change of a named key. */
export interface NewKey {
  name: string;
  description: string;
  source: NamedKeyRecord["source"];
  policy?: Readonly<Record<string, unknown>> | undefined;
}

/** The keys. Changes are on disk before they take effect. */
export class KeyRing implements KeyProvider {
  readonly #options: KeyRingOptions;
  readonly #file: DirectoryFile<SealedContent>;
  readonly named: NamedKeys;
  readonly rotation: KeyRotation;
  /** Identifies the store in its backups. It stays when the master key changes. */
  readonly owner: string;
  #masters: readonly MasterKey[];
  #content: KeyContent;
  /** All versions by their ids. */
  #versions = new Map<string, FoundVersion>();
  #byId = new Map<string, NamedKeyRecord>();
  #byName = new Map<string, NamedKeyRecord>();
  #boxKeys: readonly Buffer[] = [];
  #holds = 0;

  private constructor(
    options: KeyRingOptions,
    file: DirectoryFile<SealedContent>,
    { owner, content, masters }: { owner: string; content: KeyContent; masters: MasterKey[] },
  ) {
    this.#options = options;
    this.#file = file;
    this.owner = owner;
    this.#masters = masters;
    this.#content = content;
    this.#index();
    this.named = {
      resolve: (reference) => this.#resolve(reference),
      current: (keyId) => this.#requireCurrent(keyId),
      requireUsable: (keyId) => void this.#requireUsable(keyId),
      findPolicy: (keyId) => this.#byId.get(keyId)?.policy,
    };
    this.rotation = {
      findSuccessor: (kek) => this.#findSuccessor(kek),
      currentOf: (keyId) => this.#currentOf(keyId),
      listFormer: () =>
        [...this.#versions.values()].flatMap((one) => (one.isCurrent ? [] : [one.id])),
      retire: (keks) => this.#retire(keks),
      listDue: () => this.#listDue(),
      remove: (keyId) => this.#remove(keyId),
      onRotated: () => undefined,
    };
  }

  /** Reads the keys; `isWriting` creates the file, and ends an interrupted change of the master key. */
  static async open(options: KeyRingOptions, isWriting: boolean): Promise<KeyRing> {
    const file = new DirectoryFile(options.path, sealedSchema, WHAT);
    const { tables, damages } = isWriting ? file.read() : file.inspect();
    for (const damage of damages) options.onDamage?.(damage);
    const master = await options.master.read();
    const opened =
      tables === undefined
        ? makeFirst(master, options.clock.now())
        : await openSealed(tables, master, options);
    const ring = new KeyRing(options, file, opened);
    // The locks of other master keys are those of a change that was interrupted, or is complete now.
    const isSettled =
      tables?.locks.length === 1 && tables.locks[0]!.master === identifyMaster(master);
    if (isWriting && !isSettled) ring.#save(ring.#content, [master]);
    if (isWriting) await options.secrets?.load(ring.#content.keys);
    return ring;
  }

  /** The key that secrets of webhooks are derived from. */
  get webhookKey(): Buffer {
    return Buffer.from(this.#content.webhooks, "base64");
  }

  /** Keys that seal the secrets of access keys, sessions and remotes; the first one seals new ones. */
  readonly listBoxKeys = (): readonly Buffer[] => this.#boxKeys;

  /** Id of the key that seals secrets now. */
  get boxId(): string {
    return this.#content.boxes[0]!.id;
  }

  /** True while secrets may be sealed with a former key. */
  get hasFormerBoxes(): boolean {
    return this.#content.boxes.length > 1;
  }

  /** Forgets the keys that sealed secrets before the one with `id`, unless a snapshot needs them. */
  forgetBoxes(id: string): void {
    const { boxes } = this.#content;
    const kept = boxes.slice(0, boxes.findIndex((box) => box.id === id) + 1);
    if (kept.length === 0 || kept.length === boxes.length || this.#holds > 0) return;
    this.#save({ ...this.#content, boxes: kept });
  }

  current(): Kek {
    return this.#toKek(this.#content.storage[0]!);
  }

  find(id: string): Buffer | undefined {
    const found = this.#versions.get(id);
    if (found === undefined) return undefined;
    return found.key ?? this.#options.secrets?.require(id);
  }

  /** True if a version is known, whether its source can be reached or not. */
  has(id: string): boolean {
    return this.#versions.has(id);
  }

  /** True if a version is in the file of keys itself. */
  isLocal(id: string): boolean {
    return this.#versions.get(id)?.key !== undefined;
  }

  hold(): () => void {
    this.#holds += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#holds -= 1;
      isHeld = false;
    };
  }

  /** Named keys by their names. */
  list(): NamedKeyRecord[] {
    return this.#content.keys.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** A key by its name or its id. */
  get(name: string): NamedKeyRecord | undefined {
    return this.#byName.get(name) ?? this.#byId.get(name);
  }

  /** The versions of the key of `SSE-S3`, the current one first. */
  get storage(): readonly KeyVersion[] {
    return this.#content.storage;
  }

  /** The master key: its source and its id. */
  get master(): { source: MasterSource["kind"]; id: string; version: number | undefined } {
    const [master] = this.#masters;
    const { kind } = this.#options.master;
    return { source: kind, id: identifyMaster(master!), version: master!.version };
  }

  /** Creates a key. Throws OperationAborted if the name is taken, or there are too many. */
  async create({ name, description, source, policy }: NewKey): Promise<NamedKeyRecord> {
    if (this.#content.keys.some((key) => key.name === name))
      throw new StoreError("OperationAborted", `The key ${name} exists.`);
    if (this.#content.keys.length >= KEYS_MAX)
      throw new StoreError("OperationAborted", `There are ${KEYS_MAX} keys already.`);
    const nowMs = this.#options.clock.now();
    const version =
      source === "local" ? makeVersion(nowMs) : await this.#readSecretVersion(name, nowMs);
    const record: NamedKeyRecord = {
      id: randomUUID(),
      name,
      description,
      source,
      state: "enabled",
      createdMs: nowMs,
      versions: [version],
      ...(policy === undefined ? {} : { policy }),
    };
    this.#save({ ...this.#content, keys: [...this.#content.keys, record] });
    return record;
  }

  // A key of a backup. If its name is taken, it gets the beginning of its id.
  #adopt(key: NamedKeyRecord): void {
    const { keys } = this.#content;
    if (keys.some(({ id }) => id === key.id)) return;
    const isTaken = keys.some(({ name }) => name === key.name);
    const name = isTaken ? `${key.name}-${key.id.slice(0, 8)}` : key.name;
    this.#save({ ...this.#content, keys: [...keys, { ...key, name }] });
  }

  /**
   * The keys of a backup in addition to these, by its master key and its key file, as far as it has them. Named keys that are
   * not here are added when they are needed.
   */
  async openSaved(
    masterKey: Buffer | undefined,
    file: Buffer | undefined,
  ): Promise<Pick<KeyProvider, "find">> {
    const own = (id: string): Buffer | undefined => (this.has(id) ? this.find(id) : undefined);
    if (file === undefined) {
      // A backup of an earlier version.
      const derived = masterKey === undefined ? undefined : deriveStorageKey(masterKey);
      return { find: (id) => own(id) ?? (derived?.id === id ? derived.key : undefined) };
    }
    const saved = await this.#openSavedFile(file, masterKey);
    if (saved === undefined) return { find: own };
    return {
      find: (id) => {
        const present = own(id);
        if (present !== undefined) return present;
        const named = saved.keys.find(({ versions }) => versions.some((one) => one.id === id));
        if (named !== undefined) this.#adopt(named);
        const versions = named?.versions ?? saved.storage;
        const key = versions.find((one) => one.id === id)?.key;
        return key === undefined ? own(id) : Buffer.from(key, "base64");
      },
    };
  }

  // With its own master key, this one, or the version of a secret that it names.
  async #openSavedFile(
    file: Buffer,
    masterKey: Buffer | undefined,
  ): Promise<KeyContent | undefined> {
    const masters = [...(masterKey === undefined ? [] : [{ key: masterKey }]), ...this.#masters];
    const opened = openSavedFile(file, masters);
    if (opened !== undefined) return opened;
    const { master } = this.#options;
    for (const { version } of readLocks(file)) {
      if (version === undefined) continue;
      const former = await master.readVersion?.(version);
      const content = former === undefined ? undefined : openSavedFile(file, [former]);
      if (content !== undefined) return content;
    }
    return undefined;
  }

  /** Changes description and policy; null removes the policy. */
  describe(
    keyId: string,
    { description, policy }: { description?: string; policy?: NewKey["policy"] | null },
  ): void {
    this.#change(keyId, (key) => {
      const { policy: before, ...rest } = key;
      const next = policy === undefined ? before : (policy ?? undefined);
      return {
        ...rest,
        description: description ?? key.description,
        ...(next === undefined ? {} : { policy: next }),
      };
    });
  }

  /** Enables or disables a key; ends its pending deletion. */
  setState(keyId: string, state: "enabled" | "disabled"): void {
    this.#change(keyId, (key) => {
      const { deleteMs: _, ...rest } = key;
      return { ...rest, state };
    });
  }

  /** Plans the deletion of a key, which cannot be used from now on. It stays while objects need it. */
  planDeletion(keyId: string, days: number): void {
    const deleteMs = this.#options.clock.now() + days * DAY_MS;
    this.#change(keyId, (key) => ({ ...key, state: "pending_deletion", deleteMs }));
  }

  /** Adds a version to a named key, with which the keys of its objects are wrapped from now on. */
  async rotateNamed(keyId: string): Promise<void> {
    const key = this.#requireKey(keyId);
    requireRoom(key.versions);
    const nowMs = this.#options.clock.now();
    const version =
      key.source === "local" ? makeVersion(nowMs) : await this.#readSecretVersion(key.name, nowMs);
    const known = key.versions[0]!.secret;
    if (known !== undefined && known.version === version.secret?.version)
      throw new StoreError(
        "OperationAborted",
        "The secret service has no newer version of the key: write one first.",
      );
    this.#change(keyId, (found) => ({ ...found, versions: [version, ...found.versions] }));
    this.rotation.onRotated();
  }

  /** Adds a version to the key of `SSE-S3`. */
  rotateStorage(): void {
    requireRoom(this.#content.storage);
    const version = makeVersion(this.#options.clock.now());
    this.#save({ ...this.#content, storage: [version, ...this.#content.storage] });
    this.rotation.onRotated();
  }

  /**
   * Replaces the master key, and the keys that the former one opens: the box of secrets, and a key of `SSE-S3` that was
   * derived from it. At every moment, one of both master keys is in place and opens the file. `given` replaces the random
   * key; where the key is in the configuration, both open the file until the next start.
   */
  async rotateMaster(given?: Buffer): Promise<void> {
    const { master: source, clock } = this.#options;
    const [before] = this.#masters as [MasterKey];
    const next = await this.#chooseMaster(given);
    if (identifyMaster(next) === identifyMaster(before))
      throw new StoreError(
        "OperationAborted",
        source.kind === "secret_service"
          ? "The secret service has no newer version of the master key: write one first."
          : "The master key is the same.",
      );
    const box = { id: makeId(), key: makeKey().toString("base64") };
    const { storage, boxes } = this.#content;
    if (boxes.length >= BOXES_MAX)
      throw new StoreError(
        "OperationAborted",
        `Secrets are sealed with ${BOXES_MAX} former keys: start the store, which seals them again.`,
      );
    const isDerived = storage[0]!.id === deriveStorageKey(before.key).id;
    const content: KeyContent = {
      ...this.#content,
      boxes: [box, ...boxes],
      storage: isDerived ? [makeVersion(clock.now()), ...storage] : storage,
    };
    this.#save(content, source.kind === "setting" ? [before, next] : [next, before]);
    source.install?.(next.key);
    // A snapshot that is being taken may have the former key.
    if (source.kind !== "setting" && this.#holds === 0) this.#save(content, [next]);
    this.rotation.onRotated();
  }

  async #chooseMaster(given: Buffer | undefined): Promise<MasterKey> {
    const { master } = this.#options;
    if (master.kind === "secret_service") return master.read();
    if (given !== undefined) return { key: given };
    if (master.kind === "file") return { key: makeKey() };
    throw new StoreError(
      "OperationAborted",
      "The master key is in the configuration: name the file of the next one.",
    );
  }

  /** Writes the keys of secrets in the service again when it is there. */
  async refresh(): Promise<void> {
    await this.#options.secrets?.load(this.#content.keys);
    // A change of the master key that a snapshot has delayed.
    const { master } = this.#options;
    const isDelayed = this.#masters.length > 1 && master.kind !== "setting" && this.#holds === 0;
    if (isDelayed) this.#save(this.#content, [this.#masters[0]!]);
  }

  #resolve(reference: string): string {
    const parsed = parseKeyReference(reference);
    const found = "id" in parsed ? this.#byId.get(parsed.id) : this.#byName.get(parsed.alias);
    if (found !== undefined) return found.id;
    if ("alias" in parsed && parsed.alias === DEFAULT_ALIAS) return this.#makeDefault();
    const name = "id" in parsed ? formatKeyArn(parsed.id) : `alias/${parsed.alias}`;
    throw new StoreError("KMS.NotFoundException", `Key '${name}' does not exist`);
  }

  #makeDefault(): string {
    const nowMs = this.#options.clock.now();
    const record: NamedKeyRecord = {
      id: randomUUID(),
      name: DEFAULT_ALIAS,
      description: "Default key of aws:kms",
      source: "local",
      state: "enabled",
      createdMs: nowMs,
      versions: [makeVersion(nowMs)],
    };
    this.#save({ ...this.#content, keys: [...this.#content.keys, record] });
    return record.id;
  }

  #requireUsable(keyId: string): NamedKeyRecord {
    const key = this.#requireKey(keyId);
    const arn = formatKeyArn(key.id);
    switch (key.state) {
      case "enabled":
        return key;
      case "disabled":
        throw new StoreError("KMS.DisabledException", `${arn} is disabled.`);
      case "pending_deletion":
        throw new StoreError("KMS.KMSInvalidStateException", `${arn} is pending deletion.`);
      default:
        return key.state satisfies never;
    }
  }

  #requireKey(keyId: string): NamedKeyRecord {
    const key = this.#byId.get(keyId);
    if (key !== undefined) return key;
    throw new StoreError("KMS.NotFoundException", `Key '${formatKeyArn(keyId)}' does not exist`);
  }

  #requireCurrent(keyId: string): Kek {
    return this.#toKek(this.#requireUsable(keyId).versions[0]!);
  }

  #currentOf(keyId: string): Kek | undefined {
    const key = this.#byId.get(keyId);
    return key === undefined ? undefined : this.#toKek(key.versions[0]!);
  }

  #findSuccessor(kek: string): Kek | undefined {
    const found = this.#versions.get(kek);
    if (found === undefined || found.isCurrent) return undefined;
    return found.keyId === undefined ? this.current() : this.#currentOf(found.keyId);
  }

  #toKek({ id }: KeyVersion): Kek {
    return { id, key: this.find(id)! };
  }

  #retire(keks: readonly string[]): void {
    if (this.#holds > 0) return;
    const gone = new Set(keks);
    const keep = (versions: KeyVersion[]): KeyVersion[] =>
      versions.filter(({ id }, index) => index === 0 || !gone.has(id));
    this.#save({
      ...this.#content,
      storage: keep(this.#content.storage),
      keys: this.#content.keys.map((key) => ({ ...key, versions: keep(key.versions) })),
    });
  }

  #listDue(): { keyId: string; keks: string[] }[] {
    const nowMs = this.#options.clock.now();
    return this.#content.keys.flatMap(({ id, state, deleteMs, versions }) =>
      state === "pending_deletion" && deleteMs !== undefined && deleteMs <= nowMs
        ? [{ keyId: id, keks: versions.map((version) => version.id) }]
        : [],
    );
  }

  #remove(keyId: string): void {
    if (this.#holds > 0) return;
    this.#save({
      ...this.#content,
      keys: this.#content.keys.filter(({ id }) => id !== keyId),
    });
  }

  async #readSecretVersion(name: string, nowMs: number): Promise<KeyVersion> {
    const { secrets } = this.#options;
    if (secrets === undefined)
      throw new StoreError("InvalidRequest", "No secret service is configured (secret_url).");
    return secrets.read(name, { id: makeId(), createdMs: nowMs });
  }

  #change(keyId: string, edit: (key: NamedKeyRecord) => NamedKeyRecord): void {
    this.#requireKey(keyId);
    const keys = this.#content.keys.map((key) => (key.id === keyId ? edit(key) : key));
    this.#save({ ...this.#content, keys });
  }

  #save(content: KeyContent, masters = this.#masters): void {
    this.#file.write(sealContent(content, this.owner, masters));
    this.#content = content;
    this.#masters = masters;
    this.#index();
  }

  #index(): void {
    const { storage, keys, boxes } = this.#content;
    const versions = new Map<string, FoundVersion>();
    const add = (list: readonly KeyVersion[], keyId: string | undefined): void => {
      for (const [index, { id, key }] of list.entries()) {
        const bytes = key === undefined ? undefined : Buffer.from(key, "base64");
        versions.set(id, { id, keyId, isCurrent: index === 0, key: bytes });
      }
    };
    add(storage, undefined);
    for (const key of keys) add(key.versions, key.id);
    this.#versions = versions;
    this.#byId = new Map(keys.map((key) => [key.id, key]));
    this.#byName = new Map(keys.map((key) => [key.name, key]));
    this.#boxKeys = boxes.map(({ key }) => Buffer.from(key, "base64"));
  }
}

interface FoundVersion {
  id: string;
  /** Undefined for `SSE-S3`. */
  keyId: string | undefined;
  isCurrent: boolean;
  /** Undefined for keys in a secret service. */
  key: Buffer | undefined;
}

/** The keys of a store that has no file of them: those of earlier versions, which were derived from the master key. */
function makeFirst(master: MasterKey, nowMs: number) {
  const { key } = master;
  const { id, key: storage } = deriveStorageKey(key);
  const content: KeyContent = {
    webhooks: key.toString("base64"),
    boxes: [{ id: makeId(), key: deriveBoxKey(key).toString("base64") }],
    storage: [{ id, createdMs: nowMs, key: storage.toString("base64") }],
    keys: [],
  };
  return { owner: identifyStore(key), content, masters: [master] };
}

async function openSealed(
  tables: SealedContent,
  master: MasterKey,
  { path, master: source }: KeyRingOptions,
): Promise<{ owner: string; content: KeyContent; masters: MasterKey[] }> {
  const { owner } = tables;
  const content = openContent(tables, master);
  if (content !== undefined) return { owner, content, masters: [master] };
  // The secret has got another version since.
  for (const { version } of tables.locks) {
    if (version === undefined || source.readVersion === undefined) continue;
    const former = await source.readVersion(version);
    const opened = former === undefined ? undefined : openContent(tables, former);
    if (opened !== undefined) return { owner, content: opened, masters: [master] };
  }
  throw new Error(
    `the master key is not the one of ${path}, which has the keys of encrypted objects: put both back from the same ` +
      "backup, or set the master key to the one that the file was sealed with",
  );
}

function makeVersion(createdMs: number): KeyVersion {
  return { id: makeId(), createdMs, key: makeKey().toString("base64") };
}

function makeId(): string {
  return randomBytes(8).toString("hex");
}

function requireRoom(versions: readonly KeyVersion[]): void {
  if (versions.length < VERSIONS_MAX) return;
  throw new StoreError(
    "OperationAborted",
    `${VERSIONS_MAX} versions of the key are in use: let objects be wrapped with the current one, and their heads be written again.`,
  );
}

function readSaved(bytes: Buffer): SealedContent {
  const document = JSON.parse(bytes.toString("utf8")) as Record<string, unknown>;
  const { version: _, generation: _generation, crc: _crc, ...tables } = document;
  return sealedSchema.parse(tables);
}

function readLocks(bytes: Buffer): SealedContent["locks"] {
  return readSaved(bytes).locks;
}

// The file of a backup, opened with one of these master keys; `undefined` if none opens it.
function openSavedFile(bytes: Buffer, masters: readonly MasterKey[]): KeyContent | undefined {
  const sealed = readSaved(bytes);
  for (const master of masters) {
    const content = openContent(sealed, master);
    if (content !== undefined) return content;
  }
  return undefined;
}
