// Publishes many messages over HTTP in batches, as fast as the broker accepts them.

const BATCH = 5_000;
const LANES = 4;

/** Result of one message in the response to a batch. */
export interface BatchResult {
  /** When a delayed message is due, in epoch milliseconds. */
  scheduled_for?: number;
}

/** Publishes `make(0)` to `make(count − 1)`. `onResult` is called with the result of each message. */
export async function publishAll(
  url: string,
  count: number,
  make: (at: number) => Record<string, unknown>,
  onResult: (at: number, result: BatchResult) => void = () => undefined,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const from = next;
      next += BATCH;
      const length = Math.min(BATCH, count - from);
      const messages = Array.from({ length }, (_, index) => make(from + index));
      const answer = await fetch(`${url}/api/v1/publish/batch`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ messages }),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(text);
      const { results } = JSON.parse(text) as { results: BatchResult[] };
      for (const [index, result] of results.entries()) onResult(from + index, result);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}
