// Reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) from a response.

/** The broker writes a comment every 15 s; a connection without one is dead. */
const SILENCE_MS_MAX = 45_000;
const EVENT_CHARS_MAX = 64 * 1024 * 1024;

/** One event; `data` is without its last line end. */
export interface ServerEvent {
  type: string;
  /** The last id that was read, also by an earlier event. */
  id: string | undefined;
  data: string;
}

/** Events as they arrive, read no faster than they are taken. Throws if the connection ends or falls silent. */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<ServerEvent, never> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let type = "";
  let id: string | undefined;
  let data: string[] = [];
  try {
    for (;;) {
      const { value, done } = await readInTime(reader);
      if (done) throw new Error("The connection ended.");
      rest += decoder.decode(value, { stream: true });
      if (rest.length > EVENT_CHARS_MAX) throw new Error("An event is too long.");
      let start = 0;
      for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n", start)) {
        const line = rest.slice(start, rest[end - 1] === "\r" ? end - 1 : end);
        start = end + 1;
        if (line !== "") {
          const [name, text] = splitField(line);
          if (name === "data") data.push(text);
          else if (name === "event") type = text;
          else if (name === "id") id = text;
          continue;
        }
        if (data.length > 0) yield { type: type || "message", id, data: data.join("\n") };
        type = "";
        data = [];
      }
      rest = rest.slice(start);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

// Timers run only while a read waits: a program may take its time with a message.
async function readInTime<T>(
  reader: ReadableStreamDefaultReader<T>,
): Promise<ReadableStreamReadResult<T>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("The connection is silent.")), SILENCE_MS_MAX);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}

function splitField(line: string): [name: string, text: string] {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  return [line.slice(0, colon), line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)];
}
