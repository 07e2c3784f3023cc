// The steps of the start page: their commands, and the same sent by the console.
import type { Answer } from "../contract/answer.ts";
import { ApiFailure, segment, sendBlob, withQuery } from "../api/api.ts";
import {
  describeS3Clients,
  DEFAULT_TENANT,
  formatListener,
  hints,
  isListenerSecure,
  nameShareCommand,
  publishCommand,
} from "../session/listeners.ts";
import { api, callService, hasFeature, may } from "../session/session.ts";
import { t } from "../words/words.ts";
import { noteRequest, type StepId } from "./arrivals.ts";

const BUCKET = "first";
const TOPIC = "orders";
const MANAGE = "runtime:manage";

/** A step. */
export interface Step {
  id: StepId;
  title: string;
  text: string;
  command: string;
  /** Programs that the command needs and a machine may lack. */
  programs: readonly string[];
  waiting: string;
  /** Does the same; resolves to what happened. Undefined if only a terminal can. */
  send?: () => Promise<string>;
  /** Permission that sending requires. */
  needs?: string;
}

/** All steps, in their order. */
export function listSteps(): Step[] {
  const hasRuntime = hasFeature("runtime", "services");
  return [
    {
      id: "request",
      title: t("Send a request through the gateway"),
      text: t("The gateway forwards it to the sample in examples/hello."),
      command: formatRequest(),
      programs: ["curl"],
      waiting: t("waiting for the first request"),
      ...(hasRuntime ? { send: sendRequest, needs: MANAGE } : {}),
    },
    {
      id: "object",
      title: t("Store an object"),
      text: describeS3Clients(),
      command: formatStore(),
      programs: ["aws (AWS CLI)"],
      waiting: t("waiting for the first bucket"),
      send: storeObject,
    },
    {
      id: "message",
      title: t("Publish a message"),
      text: t("Any Kafka, MQTT or STOMP client works; Messaging shows it as it arrives."),
      command: publishCommand(TOPIC, DEFAULT_TENANT),
      programs: ["kcat"],
      waiting: t("waiting for the first message"),
      send: publishMessage,
    },
    {
      id: "tunnel",
      title: t("Share a local port"),
      text: t("A public address for what runs on port 3000; the button shares the sample instead."),
      command: nameShareCommand(),
      programs: [],
      waiting: t("waiting for the first tunnel"),
      ...(hasRuntime ? { send: openTunnel, needs: MANAGE } : {}),
    },
    {
      id: "app",
      title: t("Build an app"),
      text: t(
        "A project with a route, a database and tests. It joins this platform, and reloads on change.",
      ),
      command: hints.value?.app ?? "platform init my-app && cd my-app && platform up",
      programs: ["Node 20.10"],
      waiting: t("waiting for the first project"),
    },
  ];
}

function formatRequest(): string {
  const gate = formatListener("gate/http");
  return isListenerSecure("gate/http") ? `curl -k https://${gate}/hello` : `curl ${gate}/hello`;
}

// Without the path of the keys the user has some in the environment.
function formatStore(): string {
  const aws = `aws --endpoint-url http://${formatListener("vault/http")}`;
  const store = `${aws} s3 mb s3://${BUCKET} && echo hello | ${aws} s3 cp - s3://${BUCKET}/hello.txt`;
  if (hints.value === undefined) return store;
  return (
    `(. ${hints.value.credentials}; export AWS_ACCESS_KEY_ID=$STORE_ACCESS_KEY_ID ` +
    `AWS_SECRET_ACCESS_KEY=$STORE_SECRET_ACCESS_KEY AWS_DEFAULT_REGION=us-east-1; ${store})`
  );
}

async function sendRequest(): Promise<string> {
  const { status, duration_ms: ms } = await callService<
    Answer<"runtime", "POST /first-steps/request">
  >("runtime", "/first-steps/request", { method: "POST" });
  noteRequest();
  return t("answered with {status} in {n} ms", { status, n: Math.ceil(ms) });
}

async function storeObject(): Promise<string> {
  await callService("vault", "/buckets", { method: "POST", json: { name: BUCKET } }).catch(
    (error: unknown) => {
      if (!(error instanceof ApiFailure) || error.status !== 409) throw error;
    },
  );
  const path = api("vault", `/buckets/${BUCKET}/objects/${segment("hello.txt")}`);
  await sendBlob(path, new Blob(["hello\n"]), {
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });
  return `${BUCKET}/hello.txt`;
}

// Users and applications see the default tenant; a user has their own.
async function publishMessage(): Promise<string> {
  const tenant = may("pulse:admin") ? DEFAULT_TENANT : undefined;
  const { offset } = await callService<Answer<"pulse", "POST /publish">>(
    "pulse",
    withQuery("/publish", { tenant }),
    { method: "POST", json: { topic: TOPIC, payload: "hello" } },
  );
  return t("{topic}, offset {n}", { topic: TOPIC, n: offset ?? 0 });
}

async function openTunnel(): Promise<string> {
  const { url } = await callService<Answer<"runtime", "POST /first-steps/tunnel">>(
    "runtime",
    "/first-steps/tunnel",
    { method: "POST" },
  );
  return t("{url}, for ten minutes", { url });
}
