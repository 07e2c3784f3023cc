// The service with an SMTP sink as its relay; both end with the test file.
import { after } from "node:test";
import { startSink, type Sink, type SinkOptions } from "./sink.ts";
import { startStage, type Stage } from "./stage.ts";

const sinks: Sink[] = [];
// After the stages, whose hook was registered first.
after(async () => {
  for (const sink of sinks) await sink.close();
});

/** Starts both; `settings` are configuration keys. */
export async function startRelayedStage(
  settings: Record<string, unknown> = {},
  options: SinkOptions = {},
): Promise<{ stage: Stage; sink: Sink }> {
  const sink = await startSink(options);
  sinks.push(sink);
  const stage = await startStage({
    "smtp.host": "127.0.0.1",
    "smtp.port": sink.port,
    from_domain: "shop.example",
    ...settings,
  });
  return { stage, sink };
}
