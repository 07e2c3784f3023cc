// Messages in the editor: pushed after changes, or the editor is told to pull them; statements are checked when the
// author pauses.
import type { Connection } from "./connection.ts";
import type { Document } from "./document.ts";
import type { Problems } from "./problems.ts";
import type { Workspace } from "./workspace.ts";

/** Statements are checked after the last edit, never in the way of a completion. */
const STATEMENTS_MS = 150;

/** Options of the publisher. */
export interface PublisherOptions {
  readonly editor: Connection;
  readonly workspace: Workspace;
  readonly problems: Problems;
  /** True if the editor pulls messages. */
  readonly isPulled: boolean;
}

/** Publishes messages about the documents of the editor. */
export class Publisher {
  readonly #options: PublisherOptions;
  /** Documents that wait, the one that was edited last first. */
  #waiting = new Set<Document>();
  #isRunning = false;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** Says that a document, or another file, has changed. */
  change(document?: Document): void {
    this.#publishAll(document);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#checkStatements(), STATEMENTS_MS);
  }

  /** Says that types of other files may have changed. */
  refresh(): void {
    const { isPulled, editor } = this.#options;
    if (isPulled) void editor.request("workspace/diagnostic/refresh", null).catch(() => {});
    else this.#publishAll();
  }

  /** Removes the messages about a document that the editor has closed. */
  clear(uri: string): void {
    const { isPulled, editor } = this.#options;
    if (!isPulled) editor.notify("textDocument/publishDiagnostics", { uri, diagnostics: [] });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiting.clear();
  }

  #checkStatements(): void {
    const { workspace, problems } = this.#options;
    // Closed files have types of rows as well, which others import.
    const changed = workspace.list().filter((document) => problems.checkStatements(document));
    if (changed.length > 0) this.refresh();
  }

  #publishAll(first?: Document): void {
    if (this.#options.isPulled || this.#closed) return;
    const open = this.#options.workspace.list().filter(({ isOpen }) => isOpen);
    const others = open.filter((one) => one !== first);
    this.#waiting = new Set(first?.isOpen === true ? [first, ...others] : others);
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      for (let next = this.#take(); next !== undefined; next = this.#take()) {
        await this.#publish(next);
      }
    } finally {
      this.#isRunning = false;
    }
  }

  #take(): Document | undefined {
    const [next] = this.#waiting;
    if (next !== undefined) this.#waiting.delete(next);
    return next;
  }

  async #publish(document: Document): Promise<void> {
    const { editor, problems } = this.#options;
    const { text, uri, version } = document;
    // While TypeScript is started again, our own messages are shown alone.
    const diagnostics = await problems.list(document).catch(() => problems.listOwn(document));
    // An answer about an earlier text is not shown: the later one is in the list again.
    const isCurrent = document.isOpen && document.text === text && !this.#closed;
    if (!isCurrent) return;
    editor.notify("textDocument/publishDiagnostics", { uri, version, diagnostics });
  }
}
