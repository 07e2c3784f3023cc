// In place of Visual Studio Code: the parts of its API that the extension and its client use, as far as a test needs them.
import { randomUUID } from "node:crypto";
import { matchesGlob } from "node:path";
import { pathToFileURL } from "node:url";

/** A disposable of the editor. */
interface Disposable {
  dispose(): void;
}

type Listener = (event: unknown) => unknown;

/** A position, with lines and characters from 0. */
export class Position {
  readonly line: number;
  readonly character: number;

  constructor(line: number, character: number) {
    this.line = line;
    this.character = character;
  }
}

class Range {
  readonly start: Position;
  readonly end: Position;

  constructor(...numbers: [Position, Position] | [number, number, number, number]) {
    if (numbers.length === 2) [this.start, this.end] = numbers;
    else {
      this.start = new Position(numbers[0], numbers[1]);
      this.end = new Position(numbers[2], numbers[3]);
    }
  }
}

class Uri {
  readonly scheme = "file";
  readonly fsPath: string;

  constructor(fsPath: string) {
    this.fsPath = fsPath;
  }

  static file(path: string): Uri {
    return new Uri(path);
  }

  static parse(text: string): Uri {
    return new Uri(decodeURIComponent(new URL(text).pathname));
  }

  get path(): string {
    return this.fsPath;
  }

  with(): Uri {
    return this;
  }

  toString(): string {
    return pathToFileURL(this.fsPath).href;
  }
}

class Closer implements Disposable {
  readonly #close: () => void;

  constructor(close: () => void) {
    this.#close = close;
  }

  static from(...parts: Disposable[]): Closer {
    return new Closer(() => parts.forEach((part) => part.dispose()));
  }

  dispose(): void {
    this.#close();
  }
}

class EventEmitter {
  readonly #listeners = new Set<Listener>();

  readonly event = (listener: Listener, self?: unknown): Disposable => {
    const bound = (event: unknown): unknown => listener.call(self, event);
    this.#listeners.add(bound);
    return { dispose: () => void this.#listeners.delete(bound) };
  };

  fire(event: unknown): void {
    for (const listener of this.#listeners) listener(event);
  }

  dispose(): void {
    this.#listeners.clear();
  }
}

class CancellationTokenSource {
  readonly token = { isCancellationRequested: false, onCancellationRequested: createDisposable };

  cancel(): void {
    this.token.isCancellationRequested = true;
  }

  dispose(): void {}
}

class TabInputText {
  readonly uri: Uri;

  constructor(uri: Uri) {
    this.uri = uri;
  }
}

class CodeActionKind {
  static readonly Empty = new CodeActionKind("");
  readonly value: string;

  constructor(value: string) {
    this.value = value;
  }

  append(part: string): CodeActionKind {
    return new CodeActionKind(`${this.value}.${part}`);
  }
}

/** An open document. */
export interface FakeDocument {
  readonly uri: Uri;
  readonly languageId: string;
  version: number;
  text: string;
  getText(): string;
}

/** A filter of documents. */
interface Filter {
  readonly language?: string;
  readonly pattern?: string;
}

/** A registered provider of answers, with the documents that it is for. */
interface Provider {
  readonly selector: readonly Filter[];
  readonly provider: Record<string, (...args: unknown[]) => unknown>;
}

/** An editor with one folder. */
export class FakeEditor {
  readonly documents: FakeDocument[] = [];
  readonly warnings: string[] = [];
  /** Lines of the extension's output. */
  readonly output: string[] = [];
  /** Messages about documents, by path. */
  readonly diagnostics = new Map<string, string[]>();
  /** Registered providers by the name of the function, such as `registerHoverProvider`. */
  readonly providers = new Map<string, Provider[]>();
  isTrusted: boolean;
  readonly #folder: Uri;
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor(folder: string, isTrusted: boolean) {
    this.#folder = new Uri(folder);
    this.isTrusted = isTrusted;
  }

  /** Opens a document, as the user does. */
  open(path: string, languageId: string, text: string): FakeDocument {
    const document: FakeDocument = {
      uri: new Uri(path),
      languageId,
      version: 1,
      text,
      getText: () => document.text,
    };
    this.documents.push(document);
    this.fire("onDidChangeTabs", {});
    this.fire("onDidOpenTextDocument", document);
    return document;
  }

  /** Calls the listeners of an event. */
  fire(name: string, event: unknown): void {
    for (const listener of this.#listeners.get(name) ?? []) listener(event);
  }

  /** The provider of a document, registered by this name; undefined if there is none for it. */
  findProvider(name: string, document: FakeDocument): Provider["provider"] | undefined {
    const found = this.providers.get(name)?.find(({ selector }) => matches(selector, document));
    return found?.provider;
  }

  /** The module `vscode`. Classes and enumerations that a test does not look into are made when they are read. */
  get module(): object {
    return withDefaults({
      Position,
      Range,
      Uri,
      EventEmitter,
      CancellationTokenSource,
      CodeActionKind,
      TabInputText,
      Disposable: Closer,
      workspace: this.#createSpace(this.#createWorkspace()),
      window: this.#createSpace(this.#createWindow()),
      languages: this.#createLanguages(),
      commands: this.#createSpace({ registerCommand: createDisposable }),
      env: { language: "en", appName: "fake", sessionId: randomUUID() },
      version: "1.90.0",
    });
  }

  #createWorkspace(): object {
    const readTrust = (): boolean => this.isTrusted;
    return {
      get isTrusted() {
        return readTrust();
      },
      textDocuments: this.documents,
      notebookDocuments: [],
      workspaceFolders: [{ uri: this.#folder, name: "folder", index: 0 }],
      getWorkspaceFolder: () => ({ uri: this.#folder, name: "folder", index: 0 }),
      getConfiguration: () => ({
        get: () => undefined,
        has: () => false,
        inspect: () => undefined,
      }),
      createFileSystemWatcher: () => this.#createSpace(createDisposable()),
    };
  }

  #createWindow(): object {
    const listTabs = (): object[] =>
      this.documents.map(({ uri }) => ({ input: new TabInputText(uri) }));
    const channel = {
      appendLine: (line: string) => this.output.push(line),
      append: (text: string) => this.output.push(text),
      show: () => undefined,
      ...createDisposable(),
    };
    return {
      createOutputChannel: () => channel,
      showWarningMessage: (text: string) => Promise.resolve(void this.warnings.push(text)),
      showErrorMessage: (text: string) => Promise.resolve(void this.warnings.push(text)),
      withProgress: (_: unknown, work: (progress: object, token: object) => unknown) =>
        work({ report: () => undefined }, new CancellationTokenSource().token),
      visibleTextEditors: [],
      activeTextEditor: undefined,
      tabGroups: this.#createSpace({
        get all() {
          return [{ tabs: listTabs() }];
        },
      }),
      state: { focused: true },
    };
  }

  #createLanguages(): object {
    const known: Record<string, unknown> = {
      match: (selector: readonly Filter[], document: FakeDocument) =>
        matches(selector, document) ? 10 : 0,
      createDiagnosticCollection: () => ({
        set: (uri: Uri, list: readonly { parts: unknown[] }[]) =>
          void this.diagnostics.set(
            uri.fsPath,
            list.map(({ parts }) => String(parts[1])),
          ),
        delete: () => undefined,
        ...createDisposable(),
      }),
    };
    return new Proxy(known, {
      get: (target, name: string) =>
        target[name] ??
        ((selector: readonly Filter[], provider: Provider["provider"]) => {
          this.providers.set(name, [...(this.providers.get(name) ?? []), { selector, provider }]);
          return createDisposable();
        }),
    });
  }

  /** Functions named like events register listeners. */
  #createSpace(known: object): object {
    return new Proxy(known, {
      get: (target, name: string) => {
        if (Reflect.has(target, name)) return Reflect.get(target, name) as unknown;
        if (!/^on[A-Z]/.test(name)) return undefined;
        return (listener: Listener, self?: unknown) => {
          const bound = (event: unknown): unknown => listener.call(self, event);
          const listeners = this.#listeners.get(name) ?? new Set();
          this.#listeners.set(name, listeners.add(bound));
          return { dispose: () => void listeners.delete(bound) };
        };
      },
    });
  }
}

function createDisposable(): Disposable {
  return { dispose: () => undefined };
}

function matches(selector: readonly Filter[], { languageId, uri }: FakeDocument): boolean {
  return selector.some(
    ({ language, pattern }) =>
      (language === undefined || language === languageId) &&
      (pattern === undefined || matchesGlob(uri.fsPath, pattern)),
  );
}

/** A class without behaviour, whose static members are numbers, as those of enumerations. */
function createClass(): object {
  const made = function (this: object, ...parts: unknown[]): void {
    Object.assign(this, { parts });
  };
  return new Proxy(made, {
    get: (target, key) =>
      Reflect.has(target, key) || typeof key === "symbol"
        ? (Reflect.get(target, key) as unknown)
        : 1,
  });
}

function withDefaults(known: Record<string, unknown>): object {
  return new Proxy(known, {
    get: (target, name: string) =>
      typeof name === "string" ? (target[name] ??= createClass()) : undefined,
  });
}
