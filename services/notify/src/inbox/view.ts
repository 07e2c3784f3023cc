// Parsed messages and their HTML views; large messages are parsed on threads.
import { Worker } from "node:worker_threads";
import { createRetryLaterError } from "@platform/kernel/errors";
import * as here from "./parse.ts";
import type { ViewJob, ViewReply } from "./view-thread.ts";

export { parsedMail, type ParsedMail } from "./parse.ts";

/**
 * Policy of the view: no scripts, no forms, no remote content, and an origin of its own, so that a message cannot act
 * with the rights of the page's origin.
 */
export const VIEW_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; sandbox; frame-ancestors 'self'; form-action 'none'; base-uri 'none'";

/** Parsing takes about 0.2 s per MiB. */
const HERE_BYTES_MAX = 128 * 1024;
const THREADS_MAX = 2;
const WAITING_MAX = 16;
const REPLY_MS = 60_000;
const RETRY_SECONDS = 5;
const HEAP_MIB_MAX = 512;
const ENTRY = new URL("./view-thread.ts", import.meta.url);

let running = 0;
const waiting: (() => void)[] = [];

/** Parses a message. Rejects with `overloaded` if too many large ones are being parsed. */
export async function parseMail(content: Uint8Array): Promise<here.ParsedMail> {
  if (content.length <= HERE_BYTES_MAX) return here.parseMail(content);
  return (await runOnThread({ kind: "parse", content })) as here.ParsedMail;
}

/**
 * Returns the HTML of a message, without a doctype, for a response with `VIEW_POLICY`; parts that `cid:` names are
 * embedded. Rejects like `parseMail`.
 */
export async function renderView(content: Uint8Array): Promise<string> {
  if (content.length <= HERE_BYTES_MAX) return here.renderView(content);
  return (await runOnThread({ kind: "render", content })) as string;
}

async function runOnThread(job: ViewJob): Promise<unknown> {
  if (running >= THREADS_MAX) {
    if (waiting.length >= WAITING_MAX) {
      throw createRetryLaterError("overloaded", "Too many large messages are read.", RETRY_SECONDS);
    }
    // Its predecessor hands over the place.
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else running += 1;
  try {
    return await run(job);
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

// One thread per message: large ones are rare, and what they took is given back.
async function run(job: ViewJob): Promise<unknown> {
  const worker = new Worker(ENTRY, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX } });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => {
        const detail = "Reading the message takes too long now.";
        reject(createRetryLaterError("overloaded", detail, RETRY_SECONDS));
      }, REPLY_MS);
      worker.once("error", reject);
      worker.once("message", (reply: ViewReply) => {
        if (reply.ok) resolve(reply.value);
        else reject(new Error(reply.message));
      });
      worker.postMessage(job);
    });
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
