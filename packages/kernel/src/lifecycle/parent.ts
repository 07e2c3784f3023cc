// The link to the process that supervises this one: node's IPC channel, which is a report line and a lifeline in one.

/** Where a service really listens. */
export interface ListenerReport {
  /** `http`, `kafka`, `admin` … */
  name: string;
  /** Address the socket is bound to; a socket's path for a Unix socket. */
  host: string;
  /** 0 for a Unix socket. */
  port: number;
}

/** What a service tells its supervisor. */
export type ServiceMessage =
  | { type: "ready"; service: string; version: string; pid: number; listeners: ListenerReport[] }
  | { type: "draining"; service: string };

/** The link; without a supervisor it does nothing. */
export interface ParentLink {
  send(message: ServiceMessage): void;
  /** Called once when the supervisor has gone, however it ended. */
  onGone(callback: () => void): void;
}

/** Set in the environment of supervised processes: only then does a closed channel end the process. */
export const SUPERVISED_VARIABLE = "PLATFORM_SUPERVISED";

/** The link of this process to its parent. */
export function createParentLink(self: NodeJS.Process): ParentLink {
  const supervised = self.env[SUPERVISED_VARIABLE] === "1" && self.connected;
  return {
    send(message) {
      if (self.send === undefined || !self.connected) return;
      // The parent may go away between the check and the write.
      self.send(message, undefined, undefined, () => undefined);
    },
    onGone(callback) {
      if (!supervised) return;
      self.once("disconnect", callback);
      // A listener keeps the channel, and with it the process, alive; the service's own sockets are to decide that.
      self.channel?.unref();
    },
  };
}

/** Whether a message from a child is one of a service. */
export function isServiceMessage(message: unknown): message is ServiceMessage {
  if (typeof message !== "object" || message === null || !("type" in message)) return false;
  return message.type === "ready" || message.type === "draining";
}
