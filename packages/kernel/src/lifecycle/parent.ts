// The link to the supervising process: node's IPC channel. Reports go over it, and its end signals that the supervisor
// has gone.
import { isSecretStates, type SecretState } from "../secrets/index.ts";

/** The actual address of a listener. */
export interface ListenerReport {
  /** For example `http`, `kafka`, `admin`. */
  name: string;
  /** Bound address; for a Unix socket its path. */
  host: string;
  /** 0 for a Unix socket. */
  port: number;
}

/** Message from a service to its supervisor. */
export type ServiceMessage =
  | {
      type: "ready";
      service: string;
      version: string;
      pid: number;
      listeners: ListenerReport[];
      /** Version of the messages, if the service may be of another version than its supervisor. */
      protocol?: number;
    }
  | { type: "draining"; service: string };

/** Message from the supervisor: secrets that it replaces. */
export interface SecretsMessage {
  type: "secrets";
  id: number;
  states: readonly SecretState[];
}

/** The answer to a {@link SecretsMessage}, when all parts of the service use the new values. */
export interface SecretsAnswer {
  type: "secrets_followed";
  id: number;
  /** The reason why they do not. */
  refused?: string;
  protocol?: number;
}

/** Link to the supervisor; without one its methods do nothing. */
export interface ParentLink {
  send(message: ServiceMessage | SecretsAnswer): void;
  /** Calls `callback` with each message about secrets. */
  onSecrets(callback: (message: SecretsMessage) => void): void;
  /** Calls `callback` once when the supervisor has exited for any reason. */
  onGone(callback: () => void): void;
}

/** Environment variable of supervised processes: only then does a closed channel end the process. */
export const SUPERVISED_VARIABLE = "PLATFORM_SUPERVISED";

/** Creates the link of this process to its parent. */
export function createParentLink(self: NodeJS.Process): ParentLink {
  // A process that was started with a channel keeps `send` when the channel has closed, which may be while it loads. Others
  // can inherit the variable.
  const supervised = self.env[SUPERVISED_VARIABLE] === "1" && self.send !== undefined;
  return {
    send(message) {
      if (self.send === undefined || !self.connected) return;
      // The parent may exit between the check and the write.
      self.send(message, undefined, undefined, () => undefined);
    },
    onSecrets(callback) {
      if (!supervised) return;
      self.on("message", (message: unknown) => {
        if (isSecretsMessage(message)) callback(message);
      });
    },
    onGone(callback) {
      if (!supervised) return;
      if (!self.connected) {
        setImmediate(callback);
        return;
      }
      self.once("disconnect", callback);
      // A listener would keep the channel and the process alive; only the service's own sockets should.
      self.channel?.unref();
    },
  };
}

/** Interval of checking for the parent that npm started. */
const NPM_CHECK_MS = 500;

/**
 * Calls `callback` once when npm, which runs this process as a script, has exited. On SIGTERM npm ends its shell and
 * itself without a signal to the script.
 */
export function watchNpm(self: NodeJS.Process, callback: () => void): void {
  if (self.env["npm_lifecycle_event"] === undefined || self.platform === "win32") return;
  const parent = self.ppid;
  const timer = setInterval(() => {
    if (self.ppid === parent) return;
    clearInterval(timer);
    callback();
  }, NPM_CHECK_MS);
  timer.unref();
}

/** True if a message of a supervisor is a SecretsMessage. */
export function isSecretsMessage(message: unknown): message is SecretsMessage {
  if (typeof message !== "object" || message === null) return false;
  const { type, id, states } = message as Partial<SecretsMessage>;
  return type === "secrets" && typeof id === "number" && isSecretStates(states);
}

/** True if a message of a child process is a SecretsAnswer. */
export function isSecretsAnswer(message: unknown): message is SecretsAnswer {
  if (typeof message !== "object" || message === null) return false;
  const { type, id } = message as Partial<SecretsAnswer>;
  return type === "secrets_followed" && typeof id === "number";
}

/** True if a message of a child process is a ServiceMessage. */
export function isServiceMessage(message: unknown): message is ServiceMessage {
  if (typeof message !== "object" || message === null || !("type" in message)) return false;
  return message.type === "ready" || message.type === "draining";
}
