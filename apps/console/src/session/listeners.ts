// Addresses of the services' listeners, file and program of `platform up`: for the commands that pages show.
import type { Answer } from "../contract/answer.ts";
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiFailure } from "../api/api.ts";
import { t } from "../words/words.ts";
import { callService, config, services, session } from "./session.ts";

/** A listener of a service, by the names of `platform up`. */
type ListenerName = "gate/http" | "vault/http" | "pulse/kafka";

/** A listener. */
export interface Listener {
  /** That it is bound to; "" for one that is not known. */
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
}

/** Ports of services that were started with their defaults. */
const DEFAULT_PORTS: Readonly<Record<ListenerName, number>> = {
  "gate/http": 8080,
  "vault/http": 9000,
  "pulse/kafka": 9092,
};

/** The tenant of users and applications under `platform up`, unless they have another. */
export const DEFAULT_TENANT = "main";

/** Texts of `platform up` for a terminal in its working directory. */
type RuntimeHints = Answer<"runtime", "GET /services">["hints"];

/** Undefined until they are loaded, and for users who may not read them. */
export const hints = signal<RuntimeHints | undefined>(undefined);

/** Listeners as `platform up` reports them; undefined until it has answered. */
const reported = signal<ReadonlyMap<string, Listener> | undefined>(undefined);

/** In place of a port until it is known. */
const PENDING = "…";

/**
 * Loads the addresses of the services. Without `platform up`, or without the permission to read its services, commands
 * show the default ports; until it has answered they have a placeholder.
 */
export function useListeners(): void {
  const hasRuntime = services.value.some(({ id }) => id === "runtime");
  useEffect(() => {
    if (hasRuntime) void loadListeners();
  }, [hasRuntime]);
}

/** The command that shares port 3000. */
export function nameShareCommand(): string {
  if (config.value?.mode === "service") return "platform-tunnel client 3000";
  return hints.value?.share ?? "platform share 3000";
}

/** The way to use storage; the path of its keys for those who may read it. */
export function describeS3Clients(): string {
  const file = hints.value?.credentials;
  return file === undefined
    ? t("Any S3 client works, with an access key of storage.")
    : t("Any S3 client works, with the keys in {file}.", { file });
}

/**
 * The command that publishes to a topic of a tenant, "" for the operator's own, with a Kafka client. The operator's token
 * comes from the file for those who may read it; a broker without credentials needs none.
 */
export function publishCommand(topic: string, tenant: string): string {
  const kcat = `kcat -P -b ${formatListener("pulse/kafka")} -t ${topic}`;
  if (session.value?.method === "loopback") return `echo hello | ${kcat}`;
  const user = tenant === "" ? "operator" : `operator@${tenant}`;
  const sasl = `-X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=${user} -X sasl.password=$PLATFORM_PULSE_TOKEN`;
  const command = `echo hello | ${kcat} ${sasl}`;
  return hints.value === undefined ? command : `(. ${hints.value.credentials}; ${command})`;
}

/** False until the commands that contain addresses are complete. */
export function areListenersKnown(): boolean {
  return reported.value !== undefined || !services.value.some(({ id }) => id === "runtime");
}

/** `localhost:8080`: the host of this page with the port of a listener. */
export function formatListener(name: ListenerName): string {
  const { hostname } = location;
  const host = hostname === "127.0.0.1" ? "localhost" : hostname;
  const port = areListenersKnown()
    ? (reported.value?.get(name)?.port ?? DEFAULT_PORTS[name])
    : PENDING;
  return `${host}:${port}`;
}

/** A listener as the runtime reports it: `pulse/kafka`; `https` for one with TLS. */
export function findListener(id: string): Listener | undefined {
  return reported.value?.get(id);
}

/** True if a listener has TLS. */
export function isListenerSecure(name: ListenerName): boolean {
  return reported.value?.get(name)?.isSecure === true;
}

async function loadListeners(): Promise<void> {
  try {
    const { items, hints: shown } = await callService<Answer<"runtime", "GET /services">>(
      "runtime",
      "/services",
    );
    hints.value = shown;
    const entries = items.flatMap(({ id, listeners }) =>
      listeners.flatMap(({ name, host, port }): [string, Listener][] => {
        const isSecure = name === "https";
        const listener = { host, port, isSecure };
        // One with TLS is found by both names.
        return [
          [`${id}/${name}`, listener],
          ...(isSecure ? [[`${id}/http`, listener] as [string, Listener]] : []),
        ];
      }),
    );
    reported.value = new Map(entries);
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    hints.value = undefined;
    reported.value ??= new Map();
  }
}
