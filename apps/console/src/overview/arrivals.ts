// Arrivals of the start page's steps, as the live figures and the runtime report them.
import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ServiceId } from "@platform/console/contract";
import type { Answer } from "../contract/answer.ts";
import { feeds, figureOf } from "../live/live.ts";
import { callService, config, hasFeature, services } from "../session/session.ts";
import { useLoad } from "../view/load.ts";

/** Requests of the sign-in are in the rate within this time, and stay in it for some seconds more. */
const SETTLE_MS = 4_000;
/** From then on requests count although there was no pause: others use the gateway all the time. */
const BUSY_MS = 60_000;
const PROJECTS_MS = 3_000;

/** A step of the start page. */
export type StepId = "request" | "object" | "message" | "tunnel" | "app";

/** True once the user has left the start page for the overview. */
export const isSkipped = signal(false);
/** Times at which the steps were seen, epoch ms. */
const seenAt = signal<Readonly<Partial<Record<StepId, number>>>>({});
/** True once the page was shown as the first one: it stays until all is done. */
let wasShown = false;
const hasRequest = signal(false);

/** True if this console has the services of the steps. */
export function hasSteps(): boolean {
  const has = (id: string): boolean => services.value.some((service) => service.id === id);
  return (
    config.value?.mode === "platform" &&
    has("gate") &&
    has("pulse") &&
    has("vault") &&
    has("tunnel")
  );
}

/** True if messaging and storage were never used; the page stays until all steps are done or skipped. */
export function isFirstRun(): boolean {
  if (isSkipped.value || !hasSteps()) return false;
  if (!feeds.value.has("pulse") || !feeds.value.has("vault")) return false;
  if (wasShown) return true;
  // The access log of storage is made by itself, so its bucket does not count.
  const isUnused =
    (figureOf("pulse", "topics") ?? 1) === 0 && (figureOf("vault", "user_buckets") ?? 0) === 0;
  wasShown = isUnused;
  return isUnused;
}

/** Says that a request has arrived, as the page itself has sent it. */
export function noteRequest(): void {
  hasRequest.value = true;
}

/** Address of the first project; undefined until one runs. */
export function useFirstProject(): string | undefined {
  const isKnown = hasFeature("runtime", "projects");
  const loaded = useLoad(
    `projects ${isKnown}`,
    async () =>
      isKnown
        ? (await callService<Answer<"runtime", "GET /projects">>("runtime", "/projects")).items
        : [],
    PROJECTS_MS,
  );
  return loaded.data.value?.find(({ state }) => state === "running")?.url;
}

/**
 * Steps that were seen, with the times. Figures count what any user did: commands without credentials may act for a tenant
 * that the session cannot see.
 */
export function useArrivals(project: string | undefined): typeof seenAt.value {
  useRequests();
  const has = (service: ServiceId, figure: string): boolean => (figureOf(service, figure) ?? 0) > 0;
  const arrivals: Record<StepId, boolean> = {
    request: hasRequest.value,
    object: has("vault", "user_buckets"),
    message: has("pulse", "topics"),
    tunnel: has("tunnel", "tunnels"),
    app: project !== undefined,
  };
  const ids = Object.keys(arrivals) as StepId[];
  const fresh = ids.filter((id) => arrivals[id] && seenAt.value[id] === undefined);
  if (fresh.length > 0) {
    const now = Date.now();
    queueMicrotask(() => {
      seenAt.value = { ...seenAt.value, ...Object.fromEntries(fresh.map((id) => [id, now])) };
    });
  }
  return seenAt.value;
}

/** Sees requests through the gateway; those of the sign-in that led here do not count. */
function useRequests(): void {
  useEffect(() => {
    const openedMs = Date.now();
    let before = 0;
    return effect(() => {
      const rate = figureOf("gate", "requests") ?? 0;
      const openMs = Date.now() - openedMs;
      const isNew = before === 0 ? openMs > SETTLE_MS : openMs > BUSY_MS;
      if (rate > 0 && isNew) hasRequest.value = true;
      before = rate;
    });
  }, []);
}
