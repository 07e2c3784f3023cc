// An editor for tests: it drives `platform lsp` over standard input and output.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { Connection } from "../../src/editor/connection.ts";
import type { Diagnostic, LinePosition, LineRange, TextEdit } from "../../src/editor/protocol.ts";
import { LineIndex } from "../../src/language/line-index.ts";

const MAIN = resolve(import.meta.dirname, "../../../../bin/platform.js");
/** Another load on the machine may slow a start down many times. */
const WAIT_MS = 120_000;

/** Capabilities of an editor that is pushed messages. */
const CAPABILITIES = {
  workspace: { workspaceEdit: { documentChanges: true }, configuration: true },
  textDocument: {
    publishDiagnostics: { versionSupport: true },
    hover: { contentFormat: ["markdown", "plaintext"] },
    definition: { linkSupport: false },
    completion: {
      completionItem: {
        snippetSupport: true,
        resolveSupport: { properties: ["detail", "documentation", "additionalTextEdits"] },
      },
    },
    codeAction: {
      codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "source"] } },
    },
    documentSymbol: { hierarchicalDocumentSymbolSupport: true },
    rename: { prepareSupport: true },
    semanticTokens: {
      requests: { full: true, range: true },
      tokenTypes: [
        "class",
        "interface",
        "type",
        "parameter",
        "variable",
        "property",
        "function",
        "method",
        "keyword",
        "string",
      ],
      tokenModifiers: ["declaration", "readonly"],
      formats: ["relative"],
    },
    inlayHint: {},
  },
};

/** Options of {@link openEditor}. */
interface EditorOptions {
  /** Capabilities besides the usual ones. */
  capabilities?: { workspace?: object; textDocument?: object };
  env?: Record<string, string>;
}

/** Starts the server for a folder. */
export async function openEditor(
  t: TestContext,
  folder: string,
  { capabilities = {}, env = {} }: EditorOptions = {},
): Promise<Editor> {
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [MAIN, "lsp"], {
    cwd: folder,
    env: { ...inherited, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const editor = new Editor(folder, child);
  t.after(() => editor.close());
  await editor.initialize({
    workspace: { ...CAPABILITIES.workspace, ...capabilities.workspace },
    textDocument: { ...CAPABILITIES.textDocument, ...capabilities.textDocument },
  });
  return editor;
}

/** An open editor. Files are named by their path in the folder; positions by a text with a mark. */
export class Editor {
  readonly folder: string;
  readonly child: ChildProcess;
  readonly connection: Connection;
  readonly texts = new Map<string, string>();
  /** The last messages about each file, and the version that they are about. */
  readonly published = new Map<string, { version: number; diagnostics: Diagnostic[] }>();
  readonly messages: string[] = [];
  readonly requested: string[] = [];
  capabilities: Record<string, unknown> = {};
  #versions = new Map<string, number>();
  #onPublish = new Set<() => void>();
  #onRequest = new Set<() => void>();

  constructor(folder: string, child: ChildProcess) {
    this.folder = folder;
    this.child = child;
    this.connection = new Connection({
      input: child.stdout!,
      output: child.stdin!,
      onRequest: (method, params) => {
        this.requested.push(method);
        for (const notify of this.#onRequest) notify();
        if (method !== "workspace/configuration") return null;
        return (params as { items: unknown[] }).items.map(() => null);
      },
      onNotification: (method, params) => this.#accept(method, params),
      onClose: () => {},
    });
  }

  #accept(method: string, params: unknown): void {
    if (method === "window/showMessage")
      this.messages.push((params as { message: string }).message);
    if (method !== "textDocument/publishDiagnostics") return;
    const { uri, version, diagnostics } = params as {
      uri: string;
      version: number;
      diagnostics: Diagnostic[];
    };
    this.published.set(this.nameOf(uri), { version, diagnostics });
    for (const notify of this.#onPublish) notify();
  }

  async initialize(capabilities: object): Promise<void> {
    const uri = pathToFileURL(this.folder).href;
    const answer = await this.connection.request<{ capabilities: Record<string, unknown> }>(
      "initialize",
      {
        processId: process.pid,
        rootUri: uri,
        workspaceFolders: [{ uri, name: "project" }],
        capabilities,
      },
    );
    this.capabilities = answer.capabilities;
    this.connection.notify("initialized", {});
  }

  uriOf(file: string): string {
    return pathToFileURL(join(this.folder, file)).href;
  }

  nameOf(uri: string): string {
    const base = `${pathToFileURL(this.folder).href}/`;
    return uri.startsWith(base) ? decodeURIComponent(uri.slice(base.length)) : uri;
  }

  open(file: string, text = readFileSync(join(this.folder, file), "utf8")): void {
    this.texts.set(file, text);
    this.#versions.set(file, 1);
    const textDocument = { uri: this.uriOf(file), languageId: "typescript", version: 1, text };
    this.connection.notify("textDocument/didOpen", { textDocument });
  }

  close(): Promise<void> {
    return closeEditor(this);
  }

  /** Replaces the first occurrence of a text. */
  edit(file: string, from: string, to: string): void {
    const start = this.texts.get(file)!.indexOf(from);
    assert.notEqual(start, -1, `${from} in ${file}`);
    this.replace(file, start, start + from.length, to);
  }

  replace(file: string, start: number, end: number, text: string): void {
    const before = this.texts.get(file)!;
    const lines = new LineIndex(before);
    const range = { start: lines.toPosition(start), end: lines.toPosition(end) };
    this.texts.set(file, before.slice(0, start) + text + before.slice(end));
    this.#change(file, [{ range, text }]);
  }

  setText(file: string, text: string): void {
    this.texts.set(file, text);
    this.#change(file, [{ text }]);
  }

  #change(file: string, contentChanges: object[]): void {
    const version = this.#versions.get(file)! + 1;
    this.#versions.set(file, version);
    const textDocument = { uri: this.uriOf(file), version };
    this.connection.notify("textDocument/didChange", { textDocument, contentChanges });
  }

  /** The position of the mark `|` in a text that occurs once in a file. */
  find(file: string, marked: string): LinePosition {
    const mark = marked.indexOf("|");
    const searched = marked.replace("|", "");
    const text = this.texts.get(file)!;
    const at = text.indexOf(searched);
    assert.notEqual(at, -1, `${searched} in ${file}`);
    return new LineIndex(text).toPosition(at + mark);
  }

  /** Sends a request about a position. */
  ask<Result>(method: string, file: string, marked: string, more: object = {}): Promise<Result> {
    const textDocument = { uri: this.uriOf(file) };
    const position = this.find(file, marked);
    return this.connection.request(`textDocument/${method}`, { textDocument, position, ...more });
  }

  /** Sends a request about a file. */
  askFile<Result>(method: string, file: string, more: object = {}): Promise<Result> {
    const textDocument = { uri: this.uriOf(file) };
    return this.connection.request(`textDocument/${method}`, { textDocument, ...more });
  }

  /** The text of a range. */
  read(file: string, { start, end }: LineRange): string {
    const text = this.texts.get(file) ?? readFileSync(join(this.folder, file), "utf8");
    const lines = new LineIndex(text);
    return text.slice(lines.toOffset(start), lines.toOffset(end));
  }

  /** The text of a file after edits. */
  apply(file: string, edits: readonly TextEdit[]): string {
    const text = this.texts.get(file) ?? readFileSync(join(this.folder, file), "utf8");
    const lines = new LineIndex(text);
    const sorted = edits
      .map(({ range, newText }) => ({
        start: lines.toOffset(range.start),
        end: lines.toOffset(range.end),
        newText,
      }))
      .sort((a, b) => b.start - a.start);
    return sorted.reduce(
      (before, { start, end, newText }) => before.slice(0, start) + newText + before.slice(end),
      text,
    );
  }

  /** Waits until the server has sent a request. */
  async waitForRequest(method: string): Promise<void> {
    const { promise, resolve: done } = Promise.withResolvers<void>();
    const check = (): void => {
      if (this.requested.includes(method)) done();
    };
    this.#onRequest.add(check);
    check();
    await promise;
    this.#onRequest.delete(check);
  }

  /** Messages about the current text of a file, as `line:column severity message`, when `isExpected`. */
  async diagnose(
    file: string,
    isExpected: (lines: string[]) => boolean = () => true,
  ): Promise<string[]> {
    const { promise, resolve: done, reject } = Promise.withResolvers<string[]>();
    const check = (): void => {
      const found = this.published.get(file);
      if (found?.version !== this.#versions.get(file)) return;
      const lines = found!.diagnostics.filter(({ severity = 1 }) => severity < 3).map(describe);
      if (isExpected(lines)) done(lines);
    };
    const timer = setTimeout(() => {
      const found = this.published.get(file)?.diagnostics.map(describe).join("\n");
      reject(new Error(`${file}: the last messages were: ${found}`));
    }, WAIT_MS);
    this.#onPublish.add(check);
    check();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#onPublish.delete(check);
    }
  }
}

/** `line:column message` with numbers from 1, as `platform check` prints. */
export function describe({ range, severity = 1, code, message }: Diagnostic): string {
  const { line, character } = range.start;
  const kind = severity === 1 ? "" : "warning: ";
  const suffix = code === undefined ? "" : ` (TS${code})`;
  return `${line + 1}:${character + 1} ${kind}${message.split("\n")[0]}${suffix}`;
}

async function closeEditor({ child, connection }: Editor): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await connection.request("shutdown", null);
  const ended = once(child, "exit");
  connection.notify("exit", null);
  assert.deepEqual(await ended, [0, null]);
}
