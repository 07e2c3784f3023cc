// Calls of services that hang: each fails after the same silence, whether its caller can give up or not.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

interface Options {
  signal?: AbortSignal;
}

// Types of the module are those of a browser.
const { call, sendBlob } = (await import(new URL("../src/api/api.ts", import.meta.url).href)) as {
  call: (path: string, options: Options) => Promise<unknown>;
  sendBlob: (
    path: string,
    bytes: Blob,
    options: Required<Options> & { onProgress: () => void },
  ) => Promise<unknown>;
};

const SILENCE_MS = 30_000;
const NO_ANSWER = { status: 0, message: "The service did not answer within 30 s." };

/** A service that never answers, or sends no more than the head of its answer. */
function hang(t: TestContext, head?: Response): void {
  t.mock.method(globalThis, "fetch", (_path: string, { signal }: { signal: AbortSignal }) => {
    if (head !== undefined) {
      const { promise, reject } = Promise.withResolvers<string>();
      signal.addEventListener("abort", () => reject(signal.reason as Error));
      t.mock.method(head, "text", () => promise);
      return Promise.resolve(head);
    }
    const { promise, reject } = Promise.withResolvers<Response>();
    signal.addEventListener("abort", () => reject(signal.reason as Error));
    return promise;
  });
}

/** Lets the microtasks of a request run, then the time of a silence. */
async function passSilence(t: TestContext): Promise<void> {
  await new Promise(setImmediate);
  t.mock.timers.tick(SILENCE_MS);
}

for (const [name, options, head] of [
  ["a call", {}],
  ["a call that can be given up", { signal: new AbortController().signal }],
  ["a body that stops", { signal: new AbortController().signal }, new Response("{")],
] as const) {
  test(`${name} fails after 30 s of silence`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    hang(t, head);
    const failed = assert.rejects(call("/api/v1/topics", options), NO_ANSWER);
    await passSilence(t);
    await failed;
  });
}

test("a call that is given up is no failure of the service", async (t) => {
  hang(t);
  const stop = new AbortController();
  const given = assert.rejects(call("/api/v1/topics", { signal: stop.signal }), {
    name: "AbortError",
  });
  stop.abort();
  await given;
});

test("an upload fails after 30 s without progress, not after 30 s", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent = new FakeUpload();
  Object.assign(globalThis, {
    XMLHttpRequest: function create() {
      return sent;
    },
  });
  t.after(() => Reflect.deleteProperty(globalThis, "XMLHttpRequest"));
  const { signal } = new AbortController();
  const failures: unknown[] = [];
  void sendBlob("/part", new Blob(["x"]), { signal, onProgress: () => {} }).catch(
    (error: unknown) => failures.push(error),
  );
  t.mock.timers.tick(SILENCE_MS - 1);
  sent.upload.dispatchEvent(Object.assign(new Event("progress"), { loaded: 1 }));
  t.mock.timers.tick(SILENCE_MS - 1);
  await new Promise(setImmediate);
  assert.equal(failures.length, 0, "bytes left meanwhile");
  t.mock.timers.tick(1);
  await new Promise(setImmediate);
  const [{ status, message }] = failures as [typeof NO_ANSWER];
  assert.deepEqual({ status, message }, NO_ANSWER);
});

/** A request of the browser that sends nothing. */
class FakeUpload extends EventTarget {
  readonly upload = new EventTarget();
  open(): void {}
  setRequestHeader(): void {}
  send(): void {}
  abort(): void {
    this.dispatchEvent(new Event("abort"));
  }
}
