// The fields of a message as a guest sees and changes them.

type Field = readonly [name: string, value: string];

/** Fields that are read when a guest needs them. */
export interface LateFields {
  readonly count: number;
  read(): readonly Field[];
}

/** A field that was set or added while the others had not been read. */
export interface FieldEdit {
  readonly name: string;
  readonly value: string;
  /** It takes the place of all lines with this name. */
  readonly replaces: boolean;
}

type Entry = [key: string, name: string, value: string];

/** More fields than that are read in any case. */
const LATE_MAX = 64;
const NO_EDITS: readonly FieldEdit[] = [];

/** Fields in order. Values are latin1: one character for each byte. Names keep their case and are compared without it. */
export class FieldList {
  /** Name in lower case, name as sent, value. */
  #entries: Entry[] | undefined;
  #late: LateFields | undefined;
  /** Most requests get none or one: the list is made for the first. */
  #edits: FieldEdit[] | undefined;
  /** Names in lower case. */
  #own: Set<string> | undefined;
  #isChanged = false;

  constructor(fields: readonly Field[] | LateFields = []) {
    if ("read" in fields) this.#late = fields;
    else this.#entries = fields.map(toEntry);
  }

  /** True once a field was set, added or removed. */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  get size(): number {
    const late = this.#late;
    if (late === undefined) return this.#open().length;
    const size = late.count + (this.#edits?.length ?? 0);
    return size < LATE_MAX ? size : this.#open().length;
  }

  /** Fields that were set and added, if none has been read; otherwise undefined. */
  get edits(): readonly FieldEdit[] | undefined {
    return this.#late === undefined ? undefined : (this.#edits ?? NO_EDITS);
  }

  /** True if lines with this name, in lower case, are those of the guest: it has set them, or added one. */
  isOwn(key: string): boolean {
    return this.#own?.has(key) ?? false;
  }

  /** The fields with their names as sent or set. */
  list(): [name: string, value: string][] {
    return this.#open().map(([, name, value]) => [name, value]);
  }

  /** Each name once, in lower case. */
  listNames(): string[] {
    return [...new Set(this.#open().map(([key]) => key))];
  }

  /** The values of all lines with this name. */
  listValues(name: string): string[] {
    const key = toKey(name);
    const values: string[] = [];
    for (const entry of this.#open()) if (entry[0] === key) values.push(entry[2]);
    return values;
  }

  /** Replaces all lines with this name, in the place of the first. */
  set(name: string, value: string): void {
    this.#isChanged = true;
    if (this.#late !== undefined) {
      this.#setLate({ name, value, replaces: true });
      return;
    }
    const key = toKey(name);
    const entries = this.#open();
    (this.#own ??= new Set()).add(key);
    let at = -1;
    for (let index = 0; index < entries.length; index++) {
      if (entries[index]![0] !== key) continue;
      if (at === -1) at = index;
      else entries.splice(index--, 1);
    }
    if (at === -1) entries.push([key, name, value]);
    else entries[at] = [key, name, value];
  }

  add(name: string, value: string): void {
    this.#isChanged = true;
    if (this.#late === undefined) {
      (this.#own ??= new Set()).add(toKey(name));
      this.#open().push(toEntry([name, value]));
      return;
    }
    const edit = { name, value, replaces: false };
    if (this.#edits === undefined) this.#edits = [edit];
    else this.#edits.push(edit);
  }

  remove(name: string): void {
    const key = toKey(name);
    const entries = this.#open();
    for (let index = entries.length - 1; index >= 0; index--) {
      if (entries[index]![0] !== key) continue;
      this.#isChanged = true;
      entries.splice(index, 1);
    }
  }

  #setLate(edit: FieldEdit): void {
    const edits = this.#edits;
    if (edits === undefined) {
      this.#edits = [edit];
      return;
    }
    const key = toKey(edit.name);
    this.#edits = edits.filter(({ name }) => toKey(name) !== key);
    this.#edits.push(edit);
  }

  /** Reads the fields, and repeats what was changed before. */
  #open(): Entry[] {
    if (this.#entries !== undefined) return this.#entries;
    const entries = (this.#late?.read() ?? []).map(toEntry);
    const edits = this.#edits ?? NO_EDITS;
    this.#entries = entries;
    this.#late = undefined;
    this.#edits = undefined;
    for (const { name, value, replaces } of edits) {
      if (replaces) this.set(name, value);
      else this.add(name, value);
    }
    return entries;
  }
}

function toEntry([name, value]: Field): Entry {
  return [toKey(name), name, value];
}

/** Names in lower case: guests use few names, again and again. */
const KEYS = new Map<string, string>();
const KEYS_MAX = 1_000;

function toKey(name: string): string {
  const known = KEYS.get(name);
  if (known !== undefined) return known;
  const key = name.toLowerCase();
  if (KEYS.size >= KEYS_MAX) KEYS.clear();
  KEYS.set(name, key);
  return key;
}
