// The stream of captured requests of a tunnel: each when it begins and when it has ended.
import { LineStreams, type LineStreamsOptions } from "@platform/kernel/feeds";
import { createValidationError } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import type { CaptureStore } from "../capture/capture-store.ts";
import type { CapturedRequest } from "../capture/captured-request.ts";
import { matches, summarize } from "../capture/describe.ts";
import type { TunnelStore } from "../name/tunnel-store.ts";
import { filterQuery, readWords, REQUEST_STREAM_PATH } from "./request-routes.ts";
import { findTunnel } from "./tunnel-routes.ts";

/** Filters read headers and bodies: beyond this number of changes per second, clients are told how many they missed. */
const CHANGES_PER_SECOND_MAX = 500;
const SECOND_MS = 1_000;

/** Options of {@link createRequestStreams}. */
export interface RequestStreamsOptions extends Pick<
  LineStreamsOptions<CapturedRequest>,
  "guard" | "logger"
> {
  store: TunnelStore;
  capture: CaptureStore;
  clock: Clock;
}

/** Creates the stream. Owners see the requests of their tunnels, operators of all. */
export function createRequestStreams(options: RequestStreamsOptions): LineStreams<CapturedRequest> {
  const { store, capture, clock, guard, logger } = options;
  let secondMs = 0;
  let changes = 0;
  return new LineStreams<CapturedRequest>({
    path: REQUEST_STREAM_PATH,
    guard,
    logger,
    access: (caller, { id = "" }) => void findTunnel(store, id, caller),
    readFilter: (search, { id }) => {
      const { data, error } = filterQuery.safeParse(Object.fromEntries(search));
      if (data === undefined) {
        const issues = error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
        throw createValidationError(issues.map((issue) => ({ in: "query", ...issue })));
      }
      const words = readWords(data);
      return (request) => request.begun.tunnel.id === id && matches(request, words, clock.now());
    },
    describe: (request) => summarize(request, clock.now()),
    listen: (streams) =>
      capture.listen((request) => {
        const nowMs = clock.monotonicMs();
        if (nowMs - secondMs >= SECOND_MS) {
          secondMs = nowMs;
          changes = 0;
        }
        changes += 1;
        if (changes <= CHANGES_PER_SECOND_MAX) streams.add(request);
        else streams.miss(1);
      }),
  });
}
