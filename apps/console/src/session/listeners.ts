// Addresses of the services' listeners, for the commands that pages show.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiFailure } from "../api/api.ts";
import { callService, services } from "./session.ts";

/** A listener of a service, by the names of `platform up`. */
type ListenerName = "gate/http" | "vault/http" | "pulse/kafka";

interface Listener {
  readonly port: number;
  readonly isSecure: boolean;
}

/** Ports of services that were started with their defaults. */
const DEFAULT_PORTS: Readonly<Record<ListenerName, number>> = {
  "gate/http": 8080,
  "vault/http": 9000,
  "pulse/kafka": 9092,
};

/** Listeners as `platform up` reports them; empty until they are loaded. */
const reported = signal<ReadonlyMap<string, Listener>>(new Map());

/**
 * Loads the addresses of the services. Without `platform up`, or without the permission to read its services, commands
 * show the default ports.
 */
export function useListeners(): void {
  const hasRuntime = services.value.some(({ id }) => id === "runtime");
  useEffect(() => {
    if (hasRuntime) void loadListeners();
  }, [hasRuntime]);
}

/** `localhost:8080`: the host of this page with the port of a listener. */
export function formatListener(name: ListenerName): string {
  const { hostname } = location;
  const host = hostname === "127.0.0.1" ? "localhost" : hostname;
  return `${host}:${reported.value.get(name)?.port ?? DEFAULT_PORTS[name]}`;
}

/** True if a listener has TLS. */
export function isListenerSecure(name: ListenerName): boolean {
  return reported.value.get(name)?.isSecure === true;
}

async function loadListeners(): Promise<void> {
  interface ServiceListeners {
    id: string;
    listeners: { name: string; port: number }[];
  }
  try {
    const { items } = await callService<{ items: ServiceListeners[] }>("runtime", "/services");
    const entries = items.flatMap(({ id, listeners }) =>
      listeners.map(({ name, port }): [string, Listener] => {
        const isSecure = name === "https";
        return [`${id}/${isSecure ? "http" : name}`, { port, isSecure }];
      }),
    );
    reported.value = new Map(entries);
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
  }
}
