// Entry point of the threads that guests run in. The pool may terminate them at any time.
import { parentPort, workerData } from "node:worker_threads";
import { GuestError } from "../errors.ts";
import { Guest } from "../guest/guest.ts";
import type { FromThread, ThreadInit, ToThread } from "./messages.ts";

const { outputBytesMax } = workerData as ThreadInit;
const guests = new Map<string, Guest>();

parentPort!.on("message", (message: ToThread) => {
  if (message.type === "forget") {
    guests.delete(message.hash);
    return;
  }
  const answer = attempt(message);
  const transfer = answer.ok && answer.output !== undefined ? [answer.output.buffer] : [];
  parentPort!.postMessage(answer, transfer);
});

function attempt(message: Exclude<ToThread, { type: "forget" }>): FromThread {
  try {
    if (message.type === "load") {
      guests.set(message.hash, new Guest(message.bytes, message.abi, outputBytesMax));
      return { ok: true, output: undefined };
    }
    return { ok: true, output: guests.get(message.hash)!.call(message.input) };
  } catch (error) {
    if (error instanceof GuestError) return { ok: false, code: error.code, message: error.message };
    return { ok: false, code: "trapped", message: String(error) };
  }
}
