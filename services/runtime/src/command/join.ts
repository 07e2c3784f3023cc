// `platform up` in the folder of a project while a platform runs: the project joins it until ctrl-c.
import { once } from "node:events";
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import { resolve } from "node:path";
import { nameProgram, quoteShell } from "@platform/kernel/config";
import { explain } from "../client/api-client.ts";
import { requireCredential, type Target } from "../client/target.ts";
import { formatReadable, parseLogEvent } from "../control/log-line.ts";
import { readCredentials } from "../credentials/credentials.ts";
import { formatFolder, isUsedFolder } from "../data-folder/data-folder.ts";
import { findPlatforms, type ListedPlatform } from "../data-folder/platform-list.ts";
import { readRunning } from "../data-folder/running-file.ts";
import { isProject } from "../project/project.ts";
import { RUNTIME_TOKEN } from "../services/runtime.ts";
import { readLines } from "../supervisor/line-splitter.ts";
import { PROTOCOL } from "../watch/messages.ts";

/** Flags of `up` that a project may have which joins; the others are those of the platform. */
const OWN_FLAGS = new Set(["data", "json", "keep", "environment_file", "alone"]);
/** A platform that has just been started does not listen yet. */
const ATTEMPTS = 40;
const RETRY_MS = 250;

/** Options of {@link joinRunning}. */
export interface JoinOptions {
  data: string;
  json: boolean;
  /** True for a second platform. */
  alone: boolean;
  /** True for a project that stays when the terminal leaves. */
  keep: boolean;
  environmentFile: string | undefined;
  /** Source of each option's value: `default`, `--data`. */
  sources: ReadonlyMap<string, string>;
}

/**
 * Joins the platform that runs, if the working directory has a project; resolves to the exit code when the project has left.
 * Resolves to undefined if a platform is to be started. Throws if several run, or if options are those of the platform.
 */
export async function joinRunning(options: JoinOptions): Promise<number | undefined> {
  const { alone, keep, environmentFile, sources } = options;
  const folder = process.cwd();
  if (!isProject(folder) || process.versions["bun"] !== undefined) {
    if (keep) throw new Error("--keep: this folder has no project");
    return undefined;
  }
  if (environmentFile !== undefined && !keep) {
    throw new Error(
      "--environment-file is for a project that stays (--keep); another one has the variables of this terminal",
    );
  }
  const platform = alone ? undefined : choosePlatform(options);
  if (platform === undefined) {
    if (!keep) return undefined;
    throw new Error(
      "--keep: no platform runs that this project could join; start one, and use --keep in this folder then",
    );
  }
  const foreign = [...sources]
    .filter(([name, source]) => source.startsWith("-") && !OWN_FLAGS.has(name))
    .map(([, source]) => source);
  if (foreign.length > 0) {
    throw new Error(
      `${foreign.join(", ")}: of the platform that runs with ${quoteShell(formatFolder(platform.dataDir))}, which this project would join; leave it out, or start a second platform with --alone`,
    );
  }
  return joinPlatform(platform, folder, options);
}

function choosePlatform({ data, sources }: JoinOptions): ListedPlatform | undefined {
  const dataDir = resolve(data);
  const state = readRunning(dataDir);
  if (state !== undefined) return { dataDir, state };
  if (sources.get("data") !== "default") return undefined;
  const platforms = findPlatforms();
  if (platforms.length <= 1) return platforms[0];
  const program = nameProgram("platform");
  const commands = platforms.map(
    (one) => `  ${program} up --data ${quoteShell(formatFolder(one.dataDir))}`,
  );
  throw new Error(
    `${platforms.length} platforms are running; name the one to join, or start another with --alone:\n${commands.join("\n")}`,
  );
}

async function joinPlatform(
  platform: ListedPlatform,
  folder: string,
  { json, keep, environmentFile }: JoinOptions,
): Promise<number> {
  const { dataDir } = platform;
  if (platform.state.api_url === undefined) {
    throw new Error(
      `the platform that runs with ${formatFolder(dataDir)} is of an earlier version: restart it with this one, or use --alone`,
    );
  }
  const target: Target = { ...platform, credentials: await readCredentials(dataDir) };
  const body = {
    folder,
    protocol: PROTOCOL,
    ...(keep
      ? {
          keep,
          ...(environmentFile === undefined ? {} : { environment_file: resolve(environmentFile) }),
        }
      : { variables: selectVariables(process.env) }),
  };
  const startedMs = performance.now();
  const { sent, answer } = await connect(target, platform.state.api_url, JSON.stringify(body));
  const left = Promise.withResolvers<number>();
  let hasJoined = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => left.resolve(0));
  }
  process.stdout.on("error", () => left.resolve(0));
  const show = createPrinter(json);
  readLines(answer, (line) => {
    const message = JSON.parse(line) as StreamMessage;
    if (message.type === "joined") {
      hasJoined = true;
      showJoined(message, dataDir, performance.now() - startedMs, json);
    } else if (message.type === "ended") {
      const text = hasJoined ? message.reason : `the project does not start: ${message.reason}`;
      process.stderr.write(`platform: ${text}\n`);
      left.resolve(1);
    } else show(message);
  });
  answer.once("close", () => {
    if (!answer.complete) process.stderr.write("platform: the platform has ended\n");
    left.resolve(1);
  });
  answer.on("error", () => undefined);
  sent.on("error", () => undefined);
  const code = await left.promise;
  sent.destroy();
  return code;
}

/** A line of the answer of `POST /api/v1/projects/join`. */
type StreamMessage =
  | { type: "joined"; name: string; kind: string; url: string; notes: string[] }
  | { type: "log"; line: string }
  | { type: "missed"; count: number }
  | { type: "ended"; reason: string };

function showJoined(
  message: Extract<StreamMessage, { type: "joined" }>,
  dataDir: string,
  durationMs: number,
  json: boolean,
): void {
  const { name, kind, url, notes } = message;
  if (json) {
    process.stdout.write(`${JSON.stringify({ ...message, data_dir: dataDir })}\n`);
    return;
  }
  const seconds = (durationMs / 1_000).toFixed(1);
  const effect = kind === "joined" ? "ctrl-c leaves" : "it stays when ctrl-c ends this log";
  process.stdout.write(
    `${name} has joined the platform in ${formatFolder(dataDir)} after ${seconds} s: ${url} · ${effect}\n`,
  );
  if (dataDir !== resolve("data") && isUsedFolder(resolve("data"))) {
    notes.push("./data has the data of a platform of its own, which --alone starts");
  }
  for (const note of notes) process.stdout.write(`  ${note}\n`);
}

function createPrinter(json: boolean): (message: StreamMessage) => void {
  const hasColours = process.stdout.isTTY && process.env["NO_COLOR"] === undefined;
  return (message) => {
    if (message.type === "missed") {
      process.stderr.write(`platform: ${message.count} lines of the log were left out\n`);
    } else if (message.type === "log") {
      const event = json ? undefined : parseLogEvent(message.line);
      const text = event === undefined ? `${message.line}\n` : formatReadable(event, hasColours);
      process.stdout.write(text);
    }
  };
}

/** Sends the request; resolves when the platform has accepted it. */
async function connect(
  target: Target,
  url: string,
  body: string,
): Promise<{ sent: ClientRequest; answer: IncomingMessage }> {
  for (let attempt = 1; ; attempt += 1) {
    const sent = request(new URL("/api/v1/projects/join", url), {
      method: "POST",
      agent: false,
      headers: {
        authorization: `Bearer ${requireCredential(target, RUNTIME_TOKEN)}`,
        "content-type": "application/json",
      },
    });
    sent.end(body);
    try {
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      if (answer.statusCode === 200) return { sent, answer };
      let text = "";
      for await (const chunk of answer.setEncoding("utf8")) text += String(chunk);
      throw new Error(explain("the platform", answer.statusCode ?? 0, text));
    } catch (error) {
      const isRefused = (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
      if (!isRefused || attempt === ATTEMPTS || readRunning(target.dataDir) === undefined)
        throw error;
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }
}

// Names of the platform are its own; the platform leaves them out as well.
function selectVariables(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || name.startsWith("PLATFORM_") ? [] : [[name, value]],
    ),
  );
}
