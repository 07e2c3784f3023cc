// The extension: connects documents to the language servers of their projects. Service files get everything from it; plain
// files, which the editor's own TypeScript serves, only what concerns their SQL.
import {
  Uri,
  window,
  workspace,
  type ExtensionContext,
  type OutputChannel,
  type TextDocument,
} from "vscode";
import { LanguageClient } from "vscode-languageclient/node.js";
import { findProject, findServer, mayHaveStatements, type Program } from "./project.ts";

/** Language of service files, which `.vscode/settings.json` of a project gives them. */
const LANGUAGE = "platform-service";
const PLAIN = "typescript";
/** A workspace of many projects: each client is a process. */
const CLIENTS_MAX = 16;

let servers: Servers | undefined;

/** Called by the editor for a workspace with a service file, or with a document of the language. */
export function activate({ subscriptions }: ExtensionContext): void {
  const channel = window.createOutputChannel("Platform");
  const started = new Servers(channel);
  servers = started;
  const connectAll = (): void => workspace.textDocuments.forEach((one) => started.connect(one));
  subscriptions.push(
    channel,
    workspace.onDidOpenTextDocument((document) => started.connect(document)),
    workspace.onDidSaveTextDocument((document) => started.connect(document)),
    workspace.onDidGrantWorkspaceTrust(connectAll),
  );
  connectAll();
}

/** Called by the editor before it exits. */
export async function deactivate(): Promise<void> {
  await servers?.stop();
  servers = undefined;
}

/** The clients of the language servers, started when a document needs them. */
class Servers {
  readonly #channel: OutputChannel;
  readonly #clients = new Map<string, LanguageClient>();
  /** Folders of which the user knows that they have no server. */
  readonly #reported = new Set<string>();

  constructor(channel: OutputChannel) {
    this.#channel = channel;
  }

  /** Starts the server of a document's project, unless it runs or the workspace is not trusted. */
  connect(document: TextDocument): void {
    const { uri, languageId } = document;
    if (!workspace.isTrusted || uri.scheme !== "file") return;
    if (languageId !== LANGUAGE && !isPlain(document)) return;
    const top = workspace.getWorkspaceFolder(uri)?.uri.fsPath;
    const folder = top === undefined ? undefined : findProject(uri.fsPath, top);
    if (folder === undefined) return;
    const key = `${languageId}\0${folder}`;
    if (this.#clients.has(key) || this.#clients.size >= CLIENTS_MAX) return;
    const program = findServer(folder, process.platform);
    if (program === undefined) {
      this.#reportMissing(folder);
      return;
    }
    const client = createClient({ folder, languageId, program, channel: this.#channel });
    this.#clients.set(key, client);
    client.start().catch((error: Error) => this.#channel.appendLine(error.message));
  }

  /** Ends all servers. */
  async stop(): Promise<void> {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    await Promise.allSettled(clients.map((client) => client.dispose()));
  }

  #reportMissing(folder: string): void {
    if (this.#reported.has(folder)) return;
    this.#reported.add(folder);
    const text = `Platform is not installed in ${folder}: run "npm ci" there, or "platform init ." of an installation.`;
    void window.showWarningMessage(text);
  }
}

function isPlain(document: TextDocument): boolean {
  return document.languageId === PLAIN && mayHaveStatements(document.getText());
}

/** Options of {@link createClient}. */
interface ClientOptions {
  readonly folder: string;
  readonly languageId: string;
  readonly program: Program;
  readonly channel: OutputChannel;
}

function createClient({ folder, languageId, program, channel }: ClientOptions): LanguageClient {
  const isWindows = process.platform === "win32";
  // Characters of patterns in a path are those of the path.
  const pattern = `${folder.replaceAll("\\", "/").replaceAll(/[[{*?]/g, "[$&]")}/**/*`;
  return new LanguageClient(
    LANGUAGE,
    "Platform",
    {
      command: isWindows ? `"${program.command}"` : program.command,
      args: [...program.args],
      options: { cwd: folder, shell: isWindows },
    },
    {
      documentSelector: [{ scheme: "file", language: languageId, pattern }],
      workspaceFolder: { uri: Uri.file(folder), name: "project", index: 0 },
      outputChannel: channel,
      ...(languageId === PLAIN && { initializationOptions: { only: "statements" } }),
    },
  );
}
