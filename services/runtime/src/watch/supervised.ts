// A project's service under `platform up`: a new process takes over on a change, as with `platform run --watch`.
import { createLogger } from "@platform/kernel/log";
import {
  createParentLink,
  type SecretsAnswer,
  type SecretsMessage,
} from "@platform/kernel/lifecycle";
import {
  ACCEPTED_VARIABLE,
  readSecretStates,
  replaceInEnvironment,
} from "@platform/kernel/secrets";
import type { Development } from "@platform/service/host";
import { createGatewayPort } from "./gateway-port.ts";
import {
  isRunCommand,
  PROTOCOL,
  type OutcomeMessage,
  type SchedulesMessage,
  type SpansMessage,
} from "./messages.ts";
import { watchService } from "./watch.ts";

const [file = ""] = process.argv.slice(2);
const name = process.env["PLATFORM_SERVICE_NAME"] ?? "";
const log = createLogger({ service: name, format: "json" });
const parent = createParentLink(process);
const host = process.env["PLATFORM_SERVICE_HOST"] ?? "::";
const port = Number(process.env["PLATFORM_SERVICE_PORT"]);
/** Projects change seldom once they run, and the waiting process of each would take as much memory as the service. */
const SPARE_MS = 600_000;
/** `{"hasDetails":…,"consoleUrl":…}`; missing from platforms of earlier versions. */
const development = JSON.parse(
  process.env["PLATFORM_PROJECT_DEVELOPMENT"] ?? "null",
) as Development | null;
let isReported = false;

process.exitCode = await watchService({
  file,
  write: (text) => {
    for (const line of text.trimEnd().split("\n")) log.info(line);
  },
  retries: true,
  spareMs: SPARE_MS,
  ...(development !== null && { development }),
  gateway: createGatewayPort(),
  // A service that does not start yet must not keep the platform from starting.
  onOutcome: (failure) => {
    if (!isReported) reportReady();
    report({ type: "outcome", failure: failure ?? null });
  },
  onSchedules: report,
  onSpans: report,
  onSecretsFollowed: answerSecrets,
  onControls: ({ stop, send, sendSecrets }) => {
    parent.onSecrets((message) => {
      replaceSecrets(message);
      // Without a running process, the next one has the environment of now.
      if (!sendSecrets(message)) answerSecrets({ type: "secrets_followed", id: message.id });
    });
    process.on("message", (message: unknown) => {
      if (isRunCommand(message)) send(message);
    });
    parent.onGone(stop);
  },
});
if (process.connected) process.disconnect?.();

function reportReady(): void {
  isReported = true;
  const listeners = [{ name: "http", host, port }];
  const { pid } = process;
  const ready = { type: "ready" as const, service: name, version: "", pid, listeners };
  parent.send({ ...ready, protocol: PROTOCOL });
}

function report(message: SchedulesMessage | SpansMessage | OutcomeMessage): void {
  if (!process.connected) return;
  process.send?.({ ...message, protocol: PROTOCOL }, undefined, undefined, () => undefined);
}

/** Processes that are started from now on have the present values, and accept the former ones. */
function replaceSecrets({ states }: SecretsMessage): void {
  const names = new Set(states.map((state) => state.name));
  const others = readSecretStates(process.env).filter((state) => !names.has(state.name));
  replaceInEnvironment(process.env, states);
  process.env[ACCEPTED_VARIABLE] = JSON.stringify([...others, ...states]);
}

function answerSecrets(answer: SecretsAnswer): void {
  parent.send({ ...answer, protocol: PROTOCOL });
}
