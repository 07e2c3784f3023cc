// Entry point of the threads of streamed guests. The pool may terminate them at any time.
import { parentPort } from "node:worker_threads";
import { GuestError } from "../errors.ts";
import { compileGuest } from "../guest/guest.ts";
import {
  type FromStreamThread,
  type StreamModule,
  THREAD_MODULES_MAX,
  type ToStreamThread,
} from "./messages.ts";
import { runOnRings } from "./stream-guest.ts";

const compiled = new Map<string, WebAssembly.Module>();

parentPort!.on("message", (message: ToStreamThread) => {
  parentPort!.postMessage(attempt(message));
});

function attempt(message: ToStreamThread): FromStreamThread {
  try {
    const module = compile(message.module);
    return message.type === "load" ? { ok: true, stderr: "" } : runOnRings(module, message);
  } catch (error) {
    const code = error instanceof GuestError ? error.code : "trapped";
    const text = error instanceof Error ? error.message : String(error);
    return { ok: false, code, message: text, stderr: "" };
  }
}

function compile({ hash, bytes }: StreamModule): WebAssembly.Module {
  const module = compiled.get(hash) ?? compileGuest(bytes!);
  compiled.delete(hash);
  compiled.set(hash, module);
  if (compiled.size > THREAD_MODULES_MAX) {
    const [oldest] = compiled.keys();
    compiled.delete(oldest!);
  }
  return module;
}
