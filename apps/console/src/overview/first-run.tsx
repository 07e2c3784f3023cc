// The first page of a new installation: four commands, each ticked when it arrives.
import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ServiceId } from "@platform/console/contract";
import { feeds, figureOf } from "../live/live.ts";
import {
  areListenersKnown,
  describeS3Clients,
  DEFAULT_TENANT,
  formatListener,
  hints,
  isListenerSecure,
  nameShareCommand,
  publishCommand,
  useListeners,
} from "../session/listeners.ts";
import { config, services } from "../session/session.ts";
import { CopyButton } from "../view/copy.tsx";
import { Section } from "../view/controls.tsx";
import { Split } from "../view/pane.tsx";
import { State } from "../view/state.tsx";
import { formatTime } from "../format/format.ts";
import { t } from "../words/words.ts";
import type { ServiceLabel } from "./ledger.ts";

/** Requests of the sign-in are in the rate within this time, and stay in it for some seconds more. */
const SETTLE_MS = 4_000;
/** From then on requests count although there was no pause: others use the gateway all the time. */
const BUSY_MS = 60_000;

const isSkipped = signal(false);
/** Times at which the steps were seen, epoch ms. */
const seenAt = signal<Readonly<Record<string, number>>>({});
/** True once the page was shown: it stays until all is done. */
let wasShown = false;

/** True if messaging and tunnels were never used; the page stays until all steps are done or skipped. */
export function isFirstRun(): boolean {
  if (isSkipped.value || config.value?.mode !== "platform") return false;
  const has = (id: string): boolean => services.value.some((service) => service.id === id);
  if (!has("gate") || !has("pulse") || !has("vault") || !has("tunnel")) return false;
  if (!feeds.value.has("pulse") || !feeds.value.has("vault")) return false;
  if (wasShown) return true;
  // The access log of storage is made by itself, so its bucket does not count.
  const isUnused =
    (figureOf("pulse", "topics") ?? 1) === 0 && (figureOf("vault", "user_buckets") ?? 0) === 0;
  wasShown = isUnused;
  return isUnused;
}

/** Steps that were seen. */
interface Arrivals {
  request: boolean;
  object: boolean;
  message: boolean;
  tunnel: boolean;
}

interface Step {
  id: keyof Arrivals;
  title: string;
  text: string;
  command: string;
  waiting: string;
}

const hasRequest = signal(false);

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

/** Figures count what any user did: commands without credentials may act for a tenant that the session cannot see. */
function readArrivals(): Arrivals {
  const has = (service: ServiceId, figure: string): boolean => (figureOf(service, figure) ?? 0) > 0;
  return {
    request: hasRequest.value,
    object: has("vault", "user_buckets"),
    message: has("pulse", "topics"),
    tunnel: has("tunnel", "tunnels"),
  };
}

function listSteps(): Step[] {
  const gate = formatListener("gate/http");
  return [
    {
      id: "request",
      title: t("Send a request through the gateway"),
      text: t("The gateway forwards it to the sample in examples/hello."),
      command: isListenerSecure("gate/http")
        ? `curl -k https://${gate}/hello`
        : `curl ${gate}/hello`,
      waiting: t("waiting for the first request"),
    },
    {
      id: "object",
      title: t("Store an object"),
      text: describeS3Clients(),
      command: createBucketCommand(),
      waiting: t("waiting for the first bucket"),
    },
    {
      id: "message",
      title: t("Publish a message"),
      text: t("Any Kafka, MQTT or STOMP client works; Messaging shows it as it arrives."),
      command: publishCommand("orders", DEFAULT_TENANT),
      waiting: t("waiting for the first message"),
    },
    {
      id: "tunnel",
      title: t("Share a local port"),
      text: t("A public address for what runs on port 3000."),
      command: nameShareCommand(),
      waiting: t("waiting for the first tunnel"),
    },
  ];
}

// Without the path of the keys the user has some in the environment.
function createBucketCommand(): string {
  const create = `aws --endpoint-url http://${formatListener("vault/http")} s3 mb s3://first`;
  if (hints.value === undefined) return create;
  return (
    `(. ${hints.value.credentials}; AWS_ACCESS_KEY_ID=$STORE_ACCESS_KEY_ID ` +
    `AWS_SECRET_ACCESS_KEY=$STORE_SECRET_ACCESS_KEY AWS_DEFAULT_REGION=us-east-1 ${create})`
  );
}

export function FirstRun({ list }: { list: readonly ServiceLabel[] }) {
  useListeners();
  const steps = listSteps();
  useRequests();
  const arrivals = readArrivals();
  const fresh = steps.filter(({ id }) => arrivals[id] && seenAt.value[id] === undefined);
  if (fresh.length > 0) {
    const now = Date.now();
    queueMicrotask(() => {
      seenAt.value = { ...seenAt.value, ...Object.fromEntries(fresh.map(({ id }) => [id, now])) };
    });
  }
  const seen = seenAt.value;
  return (
    <Split pane={<Running list={list} />}>
      <div class="first">
        <h1>{t("All services run. Send them something.")}</h1>
        <p>
          {t(
            "Four commands to try in a terminal, in the platform's working directory. This page shows when they arrive.",
          )}
        </p>
        {steps.map((step, index) => (
          <section key={step.id} class={seen[step.id] === undefined ? "step" : "step done"}>
            <span class="no" aria-hidden="true">
              {seen[step.id] === undefined ? index + 1 : "✓"}
            </span>
            <div>
              <h2>{step.title}</h2>
              <span class="note" role="status">
                {seen[step.id] === undefined
                  ? step.waiting
                  : t("arrived at {time}", { time: formatTime(seen[step.id]!) })}
              </span>
              <p>{step.text}</p>
              <div class="cmd">
                <i aria-hidden="true">$</i>
                <code tabIndex={0}>{areListenersKnown() ? step.command : "…"}</code>
                {areListenersKnown() && <CopyButton text={step.command} />}
              </div>
            </div>
          </section>
        ))}
        <button
          type="button"
          class="btn"
          onClick={() => {
            isSkipped.value = true;
          }}
        >
          {steps.every(({ id }) => seen[id] !== undefined) ? t("Open the overview") : t("Skip")}
        </button>
      </div>
    </Split>
  );
}

function Running({ list }: { list: readonly ServiceLabel[] }) {
  return (
    <Section title={t("Services")}>
      <dl class="kv">
        {list.map(({ id, label }) => (
          <>
            <dt>
              <State kind={feeds.value.get(id)?.isUp === true ? "ok" : "off"}>{label}</State>
            </dt>
            <dd class="mono">{services.value.find((service) => service.id === id)?.version}</dd>
          </>
        ))}
      </dl>
    </Section>
  );
}
