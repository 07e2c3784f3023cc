// The command `dashboard`: a live screen in a terminal, a line a second elsewhere.
import type { WriteStream } from "node:tty";
import type { DashboardOptions } from "../config/dashboard-options.ts";
import { followLive } from "./live-feed.ts";
import { LiveState } from "./live-state.ts";
import { formatLine, formatScreen } from "./screen.ts";

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
const COLUMNS_DEFAULT = 80;
const ROWS_DEFAULT = 24;

/** Runs `platform-gate dashboard` until a signal, or for `options.updates` updates. Returns the exit code. */
export async function runDashboard(
  options: DashboardOptions,
  output: WriteStream,
  printError: (text: string) => void,
): Promise<number> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, stop);
  // `dashboard | head`
  output.once("error", stop);
  const view = output.isTTY ? new ScreenView(options.url, output) : new LineView(output);
  try {
    view.open();
    await followLive({
      url: options.url,
      token: options.token,
      signal: stopping.signal,
      onMessage: (data) => {
        if (!view.state.take(data)) return;
        view.show(undefined);
        if (view.state.updates === options.updates) stop();
      },
      onLost: (reason) => view.show(`since ${new Date().toISOString().slice(11, 19)}: ${reason}`),
    });
    view.close();
    return 0;
  } catch (error) {
    view.close();
    printError(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

class LineView {
  readonly state = new LiveState();
  readonly #output: WriteStream;

  constructor(output: WriteStream) {
    this.#output = output;
  }

  open(): void {}

  show(lost: string | undefined): void {
    if (lost === undefined) this.#output.write(`${formatLine(this.state, new Date())}\n`);
    else this.#output.write(`${new Date().toISOString()} no updates ${lost}\n`);
  }

  close(): void {}
}

/** Leaves the terminal as it was. */
class ScreenView {
  readonly state = new LiveState();
  readonly #url: string;
  readonly #output: WriteStream;
  #lost: string | undefined;
  readonly #onResize = (): void => this.#draw();
  readonly #onExit = (): void => this.close();

  constructor(url: string, output: WriteStream) {
    this.#url = url;
    this.#output = output;
  }

  open(): void {
    this.#output.write(ENTER);
    this.#output.on("resize", this.#onResize);
    process.once("exit", this.#onExit);
  }

  show(lost: string | undefined): void {
    this.#lost = lost;
    this.#draw();
  }

  close(): void {
    this.#output.off("resize", this.#onResize);
    process.off("exit", this.#onExit);
    this.#output.write(LEAVE);
  }

  #draw(): void {
    const facts = {
      url: this.#url,
      // 0 if the terminal does not know its size.
      columns: this.#output.columns === 0 ? COLUMNS_DEFAULT : this.#output.columns,
      rows: this.#output.rows === 0 ? ROWS_DEFAULT : this.#output.rows,
      lost: this.#lost,
      now: new Date(),
    };
    const lines = formatScreen(this.state, facts).map((line) => `${line}${CLEAR_LINE}\r\n`);
    this.#output.write(`${HOME}${lines.join("")}${CLEAR_BELOW}`);
  }
}
