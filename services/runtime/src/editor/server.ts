// The language server: between an editor and TypeScript's own server, with the checks of the language added.
import type { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { mapCompletion, mapWorkspaceEdit, mapLocation, listEditedFiles } from "./answers.ts";
import {
  canPull,
  canWatch,
  hasSnippets,
  createServerCapabilities,
  createStatementCapabilities,
  createTypeClientCapabilities,
  selectAccepted,
  type ClientCapabilities,
  type Registration,
  type TypeCapabilities,
} from "./capabilities.ts";
import { Connection } from "./connection.ts";
import { SERVICE_FILE, toSourceEdits, toSourceRange, type Document } from "./document.ts";
import { keepDatabaseFiles } from "./renamed-databases.ts";
import { checkName } from "./names.ts";
import { Problems } from "./problems.ts";
import {
  ERROR_CODES,
  ResponseError,
  type CompletionItem,
  type CompletionList,
  type DocumentParams,
  type LinePosition,
  type LineRange,
  type Location,
  type TextEdit,
  type WorkspaceEdit,
} from "./protocol.ts";
import { formatService } from "./formatting.ts";
import { Publisher } from "./publisher.ts";
import { FORWARDED, toViewParams } from "./requests.ts";
import {
  completeStatement,
  describeStatement,
  findDefinition,
  findStatement,
} from "./statements.ts";
import { findCompiler, TypeServer } from "./type-server.ts";
import { completeWords } from "./words.ts";
import { findPath, isScript, nameForTypes, Workspace } from "./workspace.ts";

/** Options of the server. */
export interface ServerOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly version: string;
}

interface InitializeParams {
  readonly rootUri?: string | null;
  readonly rootPath?: string | null;
  readonly workspaceFolders?: readonly { readonly uri: string; readonly name: string }[] | null;
  readonly capabilities?: ClientCapabilities;
  readonly initializationOptions?: {
    /** With `statements`, only those are served: the editor's own TypeScript does the rest. */
    readonly only?: string;
  } | null;
}

interface ChangeParams {
  readonly textDocument: { readonly uri: string; readonly version: number };
  readonly contentChanges: readonly { readonly range?: LineRange; readonly text: string }[];
}

const WATCHED = ["**/*.service.ts", "**/*.sql", "**/tsconfig.json", "**/package.json"];
const WARNING = 2;
const DELETED = 3;

/** Parts that exist after `initialize`. */
interface Session {
  readonly workspace: Workspace;
  readonly types: TypeServer | undefined;
  readonly problems: Problems;
  readonly publisher: Publisher;
  readonly client: ClientCapabilities;
  /** True to serve statements and nothing else. */
  readonly isStatementsOnly: boolean;
  keywordToken: number;
}

/** Serves one editor until it exits; resolves to 0 if it has shut down before, as the protocol requires. */
export function runServer(options: ServerOptions): Promise<number> {
  return new LanguageServer(options).finished;
}

class LanguageServer {
  readonly #editor: Connection;
  readonly #version: string;
  readonly #finished = Promise.withResolvers<number>();
  /** Abilities of the editor: TypeScript asks before there is a session. */
  #client: ClientCapabilities = {};
  #session: Session | undefined;
  #hasShutDown = false;

  constructor({ input, output, version }: ServerOptions) {
    this.#version = version;
    this.#editor = new Connection({
      input,
      output,
      onRequest: (method, params, signal) => this.#answer(method, params, signal),
      onNotification: (method, params) => this.#accept(method, params),
      onClose: () => {
        // An open input keeps the process.
        input.destroy();
        void this.#finish();
      },
    });
  }

  /** Resolves with the status of the process. */
  get finished(): Promise<number> {
    return this.#finished.promise;
  }

  async #finish(): Promise<void> {
    this.#session?.publisher.close();
    await this.#session?.types?.stop();
    this.#session?.problems.schemas.close();
    this.#finished.resolve(this.#hasShutDown ? 0 : 1);
  }

  async #answer(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    if (method === "initialize") return this.#initialize(params as InitializeParams);
    const session = this.#session;
    if (session === undefined) {
      throw new ResponseError(ERROR_CODES.notInitialized, "expected initialize first");
    }
    if (method === "shutdown") {
      this.#hasShutDown = true;
      return null;
    }
    return this.#answerInSession(session, method, params, signal);
  }

  async #answerInSession(
    session: Session,
    method: string,
    params: unknown,
    signal: AbortSignal,
  ): Promise<unknown> {
    switch (method) {
      case "textDocument/diagnostic":
        return this.#pull(session, params as DocumentParams, signal);
      case "completionItem/resolve":
        return this.#resolveCompletion(session, params as CompletionItem, signal);
      case "textDocument/completion":
        return this.#complete(session, params as DocumentParams, signal);
      case "textDocument/hover":
        return this.#hover(session, params as DocumentParams, signal);
      case "textDocument/definition":
        return this.#define(session, params as DocumentParams, signal);
      case "textDocument/formatting":
      case "textDocument/rangeFormatting":
        return this.#format(session, method, params as DocumentParams, signal);
      case "textDocument/prepareRename":
        return this.#prepareRename(session, params as DocumentParams, signal);
      case "textDocument/rename":
        return this.#rename(session, params as DocumentParams, signal);
      case "workspace/symbol":
        return this.#findSymbols(session, params, signal);
      default:
        if (FORWARDED[method] !== undefined) {
          return this.#forward(session, method, params as DocumentParams, signal);
        }
        throw new ResponseError(ERROR_CODES.methodNotFound, `${method} is not supported`);
    }
  }

  async #initialize(params: InitializeParams): Promise<unknown> {
    if (this.#session !== undefined) {
      throw new ResponseError(ERROR_CODES.invalidRequest, "initialize is repeated");
    }
    const uri = params.workspaceFolders?.[0]?.uri ?? params.rootUri ?? "";
    const folder = findPath(uri) ?? params.rootPath ?? process.cwd();
    const client = params.capabilities ?? {};
    const workspace = new Workspace(folder.replace(/(?<=.)\/$/, ""));
    const only = params.initializationOptions?.only;
    if (only !== undefined && only !== "statements") {
      throw new ResponseError(ERROR_CODES.invalidParams, 'expected "statements" as "only"');
    }
    const isStatementsOnly = only !== undefined;
    if (!isStatementsOnly) workspace.discover();
    const types = isStatementsOnly ? undefined : this.#startTypes(workspace, params);
    const problems = new Problems(workspace, types, isStatementsOnly);
    const isPulled = canPull(client);
    const publisher = new Publisher({ editor: this.#editor, workspace, problems, isPulled });
    this.#session = {
      workspace,
      types,
      problems,
      publisher,
      client,
      isStatementsOnly,
      keywordToken: -1,
    };
    for (const document of workspace.list()) problems.checkStatements(document);
    // Without it, declarations and statements are still checked.
    const started = types?.ready.catch((error: Error) => this.#warn(error.message));
    const answer = (await started) as { capabilities: TypeCapabilities } | undefined;
    const capabilities = answer?.capabilities;
    const { tokenTypes = [] } = capabilities?.semanticTokensProvider?.legend ?? {};
    this.#session.keywordToken = tokenTypes.indexOf("keyword");
    return {
      capabilities: isStatementsOnly
        ? createStatementCapabilities(isPulled)
        : createServerCapabilities(capabilities, isPulled),
      serverInfo: { name: "platform", version: this.#version },
    };
  }

  #startTypes(workspace: Workspace, params: InitializeParams): TypeServer | undefined {
    this.#client = params.capabilities ?? {};
    const compiler = findCompiler(workspace.folder);
    if (compiler === undefined) {
      this.#warn("types are not checked; install typescript 7 in the project");
      return undefined;
    }
    return new TypeServer({
      compiler,
      initialize: {
        rootUri: pathToFileURL(workspace.folder).href,
        workspaceFolders: null,
        ...params,
        processId: process.pid,
        capabilities: createTypeClientCapabilities(params.capabilities ?? {}),
      },
      onRequest: (method, value, signal) => this.#answerTypes(method, value, signal),
      onNotification: (method, value) => this.#acceptOfTypes(method, value),
      onReady: (connection) => {
        workspace.replay(connection);
        this.#session?.publisher.refresh();
      },
      onFailure: (reason) => this.#warn(`${reason}; types are not checked any more`),
    });
  }

  #warn(message: string): void {
    this.#editor.notify("window/showMessage", { type: WARNING, message: `platform: ${message}` });
  }

  // Requests of TypeScript: for the editor's settings, files and progress.
  async #answerTypes(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    if (method === "workspace/diagnostic/refresh") {
      this.#session?.publisher.refresh();
      return null;
    }
    if (method === "workspace/applyEdit") {
      const { edit, ...rest } = params as { edit: WorkspaceEdit };
      const snapshot = this.#session!.workspace.takeSnapshot();
      const mapped = mapWorkspaceEdit(snapshot, edit, true);
      if (mapped === undefined) return { applied: false };
      return this.#editor.request(method, { ...rest, edit: mapped }, signal);
    }
    if (method === "client/registerCapability") {
      const { registrations } = params as { registrations: Registration[] };
      const accepted = selectAccepted(registrations, this.#client);
      if (accepted.length === 0) return null;
      return this.#editor.request(method, { registrations: accepted }, signal);
    }
    const answer = await this.#editor.request(method, params, signal);
    return method === "workspace/configuration" ? addSettings(params, answer) : answer;
  }

  #acceptOfTypes(method: string, params: unknown): void {
    // Messages are pulled, and the log of the child is long.
    if (method === "textDocument/publishDiagnostics" || method === "window/logMessage") return;
    this.#editor.notify(method, params);
  }

  #accept(method: string, params: unknown): void {
    if (method === "exit") {
      this.#editor.close();
      return;
    }
    const session = this.#session;
    if (session === undefined) return;
    try {
      this.#acceptInSession(session, method, params);
    } catch (error) {
      this.#warn((error as Error).message);
    }
  }

  #acceptInSession(session: Session, method: string, params: unknown): void {
    const { workspace, publisher, types } = session;
    switch (method) {
      case "initialized":
        this.#watchFiles(session);
        publisher.change();
        break;
      case "textDocument/didOpen": {
        const { textDocument } = params as {
          textDocument: { uri: string; languageId: string; version: number; text: string };
        };
        const document = workspace.open(textDocument);
        publisher.change(document);
        break;
      }
      case "textDocument/didChange":
        this.#change(session, params as ChangeParams);
        break;
      case "textDocument/didClose": {
        const { uri } = (params as DocumentParams).textDocument;
        workspace.close(uri);
        publisher.clear(uri);
        publisher.change();
        break;
      }
      case "textDocument/didSave":
        // Editors without file watching report other files in this way.
        if (!canWatch(session.client) && !session.isStatementsOnly) workspace.discover();
        publisher.change();
        break;
      case "workspace/didChangeWatchedFiles":
        this.#changeFiles(session, params as { changes: { uri: string; type: number }[] });
        break;
      default:
        if (method.startsWith("workspace/")) types?.notify(method, params);
    }
  }

  #change({ workspace, publisher }: Session, params: ChangeParams): void {
    const { textDocument, contentChanges } = params;
    const document = workspace.find(textDocument.uri);
    if (document?.isOpen !== true) return;
    document.change(contentChanges, textDocument.version);
    workspace.touch();
    publisher.change(document);
  }

  #changeFiles(
    { workspace, types, publisher }: Session,
    params: { changes: { uri: string; type: number }[] },
  ): void {
    for (const { uri, type } of params.changes) {
      const path = findPath(uri);
      if (path === undefined) continue;
      if (SERVICE_FILE.test(path) && workspace.contains(path)) workspace.readFile(path);
      else if (type !== DELETED && types !== undefined) workspace.reveal(path, types);
    }
    types?.notify("workspace/didChangeWatchedFiles", params);
    publisher.change();
  }

  #watchFiles({ client }: Session): void {
    if (!canWatch(client)) return;
    const watchers = WATCHED.map((globPattern) => ({ globPattern }));
    const method = "workspace/didChangeWatchedFiles";
    const registrations = [{ id: "platform-files", method, registerOptions: { watchers } }];
    void this.#editor.request("client/registerCapability", { registrations }).catch(() => {});
  }

  #findDocument({ workspace }: Session, params: DocumentParams | null): Document {
    const uri: unknown = params?.textDocument?.uri;
    if (typeof uri !== "string") {
      throw new ResponseError(ERROR_CODES.invalidParams, "expected textDocument.uri");
    }
    const document = workspace.find(uri);
    if (document !== undefined) return document;
    throw new ResponseError(ERROR_CODES.invalidParams, `${uri} is not open`);
  }

  async #pull(session: Session, params: DocumentParams, signal: AbortSignal): Promise<unknown> {
    const document = this.#findDocument(session, params);
    return { kind: "full", items: await session.problems.list(document, signal) };
  }

  /** Sends a request about a position, and maps its answer; null if TypeScript has no such position. */
  async #forward(
    session: Session,
    method: string,
    params: DocumentParams,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { workspace, types, keywordToken } = session;
    const document = this.#findDocument(session, params);
    if (types === undefined || !isScript(document)) return null;
    workspace.flush(types);
    const snapshot = workspace.takeSnapshot();
    const analysis = document.analyze();
    const mapped = toViewParams(method, params, analysis, nameForTypes(document));
    if (mapped === undefined) return null;
    const answer = await types.request(method, mapped, signal);
    return FORWARDED[method]!.map(answer as never, { snapshot, analysis, keywordToken });
  }

  async #complete(
    session: Session,
    params: DocumentParams,
    signal: AbortSignal,
  ): Promise<CompletionList> {
    const document = this.#findDocument(session, params);
    const analysis = document.analyze();
    const offset = analysis.lines.toOffset(readPosition(params));
    const place = findStatement(document, offset, session.problems.schemas);
    if (place !== undefined) return { isIncomplete: false, items: completeStatement(place) };
    const words =
      document.isService && !session.isStatementsOnly
        ? completeWords(analysis, offset, hasSnippets(session.client))
        : undefined;
    if (words?.isExclusive === true) return { isIncomplete: false, items: words.items };
    const method = "textDocument/completion";
    const list = (await this.#forward(session, method, params, signal)) as CompletionList | null;
    const { items = [], ...rest } = list ?? { isIncomplete: false };
    return { ...rest, items: [...(words?.items ?? []), ...items] };
  }

  async #hover(session: Session, params: DocumentParams, signal: AbortSignal): Promise<unknown> {
    const place = this.#findStatement(session, params);
    const hover = place && describeStatement(place);
    return hover ?? this.#forward(session, "textDocument/hover", params, signal);
  }

  async #define(session: Session, params: DocumentParams, signal: AbortSignal): Promise<unknown> {
    const place = this.#findStatement(session, params);
    const location = place && findDefinition(place);
    return location
      ? [location]
      : this.#forward(session, "textDocument/definition", params, signal);
  }

  #findStatement(session: Session, params: DocumentParams): ReturnType<typeof findStatement> {
    const document = this.#findDocument(session, params);
    const offset = document.analyze().lines.toOffset(readPosition(params));
    return findStatement(document, offset, session.problems.schemas);
  }

  async #format(
    session: Session,
    method: string,
    params: DocumentParams,
    signal: AbortSignal,
  ): Promise<unknown> {
    const document = this.#findDocument(session, params);
    const { types, workspace } = session;
    if (types === undefined || !isScript(document)) return null;
    workspace.flush(types);
    if (document.isService) {
      const { options, range } = params as { options?: unknown; range?: LineRange };
      return formatService(document, types, { options, range }, signal);
    }
    // The view of a plain file may contain types of rows.
    const analysis = document.analyze();
    const mapped = toViewParams(method, params, analysis, nameForTypes(document));
    if (mapped === undefined) return null;
    const edits = await types.request<readonly TextEdit[] | null>(method, mapped, signal);
    return toSourceEdits(analysis, edits ?? []);
  }

  async #resolveCompletion(
    { types, workspace }: Session,
    item: CompletionItem,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { fileName } = (item.data ?? {}) as { fileName?: string };
    const analysis =
      fileName === undefined ? undefined : workspace.takeSnapshot().findPath(fileName);
    if (types === undefined || fileName === undefined) return item;
    workspace.flush(types);
    // The range of the item is the author's; TypeScript needs only its data.
    const { textEdit, ...rest } = item;
    const answer = await types.request<CompletionItem>("completionItem/resolve", rest, signal);
    const { textEdit: _, ...resolved } =
      analysis === undefined ? answer : (mapCompletion(analysis, answer) ?? answer);
    return textEdit === undefined ? resolved : { ...resolved, textEdit };
  }

  async #prepareRename(
    session: Session,
    params: DocumentParams,
    signal: AbortSignal,
  ): Promise<unknown> {
    const document = this.#findDocument(session, params);
    const { types, workspace } = session;
    if (types === undefined || !isScript(document)) return null;
    workspace.flush(types);
    const analysis = document.analyze();
    const method = "textDocument/prepareRename";
    const mapped = toViewParams(method, params, analysis, nameForTypes(document));
    if (mapped === undefined) return null;
    const answer = await types.request<LineRange | { range: LineRange } | null>(
      method,
      mapped,
      signal,
    );
    if (answer === null || (!("range" in answer) && !("start" in answer))) return answer;
    const range = toSourceRange(analysis, "range" in answer ? answer.range : answer);
    if (range === undefined) return null;
    return "range" in answer ? { ...answer, range } : range;
  }

  async #rename(session: Session, params: DocumentParams, signal: AbortSignal): Promise<unknown> {
    const document = this.#findDocument(session, params);
    const { types, workspace } = session;
    if (types === undefined || !isScript(document)) return null;
    const newName = checkName(String(params["newName"]));
    workspace.flush(types);
    const snapshot = workspace.takeSnapshot();
    const method = "textDocument/rename";
    const mapped = toViewParams(method, params, document.analyze(), nameForTypes(document));
    if (mapped === undefined) {
      throw new ResponseError(ERROR_CODES.requestFailed, "there is no name at this position");
    }
    const sent = { ...mapped, newName };
    const answer = await types.request<WorkspaceEdit | null>(method, sent, signal);
    if (answer === null) return null;
    const edit = mapWorkspaceEdit(snapshot, answer, true);
    const foreign = listEditedFiles(answer).find((uri) => !isOwnFile(workspace, uri));
    if (edit === undefined || foreign !== undefined) {
      const message = `${foreign ?? "a part of the language"} would change; it cannot be renamed`;
      throw new ResponseError(ERROR_CODES.requestFailed, message);
    }
    return keepDatabaseFiles(workspace, edit);
  }

  async #findSymbols(
    { types, workspace }: Session,
    params: unknown,
    signal: AbortSignal,
  ): Promise<unknown> {
    if (types === undefined) return [];
    workspace.flush(types);
    const snapshot = workspace.takeSnapshot();
    const found = await types.request<readonly { location: Location }[] | null>(
      "workspace/symbol",
      params,
      signal,
    );
    return (found ?? []).flatMap((symbol) => {
      const location = mapLocation(snapshot, symbol.location);
      return location === undefined ? [] : [{ ...symbol, location }];
    });
  }
}

function readPosition({ position }: DocumentParams): LinePosition {
  const { line, character } = position ?? {};
  if (Number.isInteger(line) && Number.isInteger(character)) return position!;
  throw new ResponseError(ERROR_CODES.invalidParams, "expected a position");
}

/** Settings besides those of the editor: a rename changes the name in all files, and no import gets an alias. */
function addSettings(params: unknown, answer: unknown): unknown {
  const { items } = params as { items: readonly { section?: string }[] };
  const settings = answer as readonly (Record<string, unknown> | null)[];
  return items.map(({ section }, index) => {
    const found = settings[index] ?? null;
    if (section !== "typescript") return found;
    const preferences = { useAliasesForRenames: false, ...(found?.["preferences"] as object) };
    return { ...found, preferences };
  });
}

function isOwnFile(workspace: Workspace, uri: string): boolean {
  const path = findPath(uri);
  return path !== undefined && workspace.contains(path) && !path.includes("/node_modules/");
}
