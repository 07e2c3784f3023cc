// The documents of a project, and what TypeScript has been sent of them.
import { readFileSync } from "node:fs";
import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Snapshot } from "./answers.ts";
import { Document, type Analysis, type DocumentOptions } from "./document.ts";
import { createMissingFiles, listFiles } from "./project-files.ts";

const DOCUMENTS_MAX = 10_000;
const SCRIPT = /\.[cm]?[jt]sx?$/;

/** Receives notifications about documents. */
export interface DocumentReceiver {
  notify(method: string, params: unknown): void;
}

/** All documents. The editor's are open; those of the language are known from the start, with their text on disk. */
export class Workspace {
  /** Absolute path of the project. */
  readonly folder: string;
  readonly #documents = new Map<string, Document>();
  /** Text, version and address that TypeScript has, by key. */
  readonly #sent = new Map<string, { text: string; version: number; uri: string }>();
  readonly #files: readonly string[] | undefined;
  #snapshot: Snapshot | undefined;
  #missing: ReadonlyMap<string, string> = new Map();

  /** `files` are the only ones that TypeScript checks, for files that are no project; default: all in the folder. */
  constructor(folder: string, files?: readonly string[]) {
    this.folder = folder;
    this.#files = files;
  }

  /** Reads the service files of the project. */
  discover(): void {
    const paths = listFiles(this.folder, /\.service\.ts$/);
    for (const path of paths) this.readFile(path);
  }

  /** Opens a file with its text on disk, or reads it again; a document of the editor stays as it is. */
  readFile(path: string): void {
    const known = this.#documents.get(path);
    if (known?.isOpen === true) return;
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch {
      this.#remove(path);
      return;
    }
    if (known === undefined) {
      const uri = pathToFileURL(path).href;
      this.#add(path, new Document({ uri, path, languageId: "typescript", text }));
    } else if (known.text !== text) known.replace(text);
    this.touch();
  }

  /** Opens a document of the editor. Throws if there are too many. */
  open(options: Pick<DocumentOptions, "uri" | "languageId" | "text" | "version">): Document {
    const path = findPath(options.uri);
    const key = path ?? options.uri;
    const document = new Document({ ...options, path });
    document.isOpen = true;
    document.setRowTypes(this.#documents.get(key)?.rowTypes ?? new Map());
    this.#add(key, document);
    this.touch();
    return document;
  }

  /** Closes a document of the editor; a service file continues with its text on disk. */
  close(uri: string): void {
    const document = this.find(uri);
    if (document === undefined) return;
    document.isOpen = false;
    const { path } = document;
    if (path !== undefined && document.isService && this.contains(path)) {
      this.readFile(path);
    } else this.#remove(path ?? uri);
    this.touch();
  }

  /** True for paths below the project. */
  contains(path: string): boolean {
    return path.startsWith(this.folder + sep);
  }

  /** The document of an address. */
  find(uri: string): Document | undefined {
    return this.#documents.get(findPath(uri) ?? uri);
  }

  /** All documents. */
  list(): Document[] {
    return [...this.#documents.values()];
  }

  /** Says that a text has changed. */
  touch(): void {
    this.#snapshot = undefined;
  }

  /** The files of this moment. */
  takeSnapshot(): Snapshot {
    if (this.#snapshot !== undefined) return this.#snapshot;
    const analyses = new Map<string, Analysis>();
    const names = new Map<string, string>();
    for (const [key, document] of this.#documents) {
      analyses.set(key, document.analyze());
      names.set(key, document.uri);
    }
    this.#snapshot = {
      findPath: (path) => analyses.get(path),
      find: (uri) => analyses.get(findPath(uri) ?? uri),
      nameForEditor: (uri) => names.get(findPath(uri) ?? uri) ?? uri,
    };
    return this.#snapshot;
  }

  /** Sends what has changed since the last call. */
  flush(receiver: DocumentReceiver): void {
    for (const [key, document] of this.#documents) {
      if (!isScript(document)) continue;
      const { text } = document.analyze().view;
      const sent = this.#sent.get(key);
      const uri = nameForTypes(document);
      if (sent === undefined) {
        this.#sent.set(key, { text, version: 1, uri });
        const languageId = document.isService ? "typescript" : document.languageId;
        const textDocument = { uri, languageId, version: 1, text };
        receiver.notify("textDocument/didOpen", { textDocument });
      } else if (sent.text !== text) {
        sent.text = text;
        sent.version++;
        receiver.notify("textDocument/didChange", {
          textDocument: { uri, version: sent.version },
          contentChanges: [{ text }],
        });
      }
    }
    this.#closeRemoved(receiver);
  }

  /** Sends everything, to a server that has just started. */
  replay(receiver: DocumentReceiver): void {
    this.#sent.clear();
    this.#missing = createMissingFiles(this.folder, this.#files);
    for (const [path, text] of this.#missing) {
      const textDocument = { uri: pathToFileURL(path).href, languageId: "json", version: 1, text };
      receiver.notify("textDocument/didOpen", { textDocument });
    }
    this.flush(receiver);
  }

  /** Forgets a configuration that was put in place of a missing one, as the file exists now. */
  reveal(path: string, receiver: DocumentReceiver): void {
    if (!this.#missing.has(path)) return;
    this.#missing = new Map(Array.from(this.#missing).filter(([known]) => known !== path));
    const textDocument = { uri: pathToFileURL(path).href };
    receiver.notify("textDocument/didClose", { textDocument });
  }

  #closeRemoved(receiver: DocumentReceiver): void {
    for (const [key, { uri }] of this.#sent) {
      if (this.#documents.has(key)) continue;
      this.#sent.delete(key);
      receiver.notify("textDocument/didClose", { textDocument: { uri } });
    }
  }

  #add(key: string, document: Document): void {
    if (!this.#documents.has(key) && this.#documents.size >= DOCUMENTS_MAX) {
      throw new Error(`more than ${DOCUMENTS_MAX} documents are open`);
    }
    this.#documents.set(key, document);
  }

  #remove(key: string): void {
    this.#documents.delete(key);
    this.touch();
  }
}

/** True for files that TypeScript reads. */
export function isScript({ isService, path, languageId }: Document): boolean {
  if (isService) return !path!.endsWith(".js");
  return path === undefined ? /^(?:type|java)script/.test(languageId) : SCRIPT.test(path);
}

/** The address under which TypeScript has a document. */
export function nameForTypes({ path, uri }: Document): string {
  return path === undefined ? uri : pathToFileURL(path).href;
}

/** The path of an address; undefined if it is not that of a file. */
export function findPath(uri: string): string | undefined {
  if (!uri.startsWith("file:")) return undefined;
  try {
    return fileURLToPath(uri);
  } catch {
    return undefined;
  }
}
