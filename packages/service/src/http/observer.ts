// The end of a request: metrics, span and log line.
import { toPlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { createHttpMetrics, type HttpMetrics, type MetricRegistry } from "@platform/kernel/metrics";
import type { Call } from "./call.ts";

/** Records ended requests. */
export class RequestObserver {
  readonly #metrics: HttpMetrics;
  readonly #log: Logger;

  constructor(registry: MetricRegistry, log: Logger) {
    this.#metrics = createHttpMetrics(registry);
    this.#log = log;
  }

  /** Records a request with the status that was sent; 0 if the client disconnected before. */
  record(call: Call, status: number, durationMs: number): void {
    const { route, span, method } = call;
    const label = route?.path ?? "unmatched";
    const series =
      route === null
        ? this.#metrics.series(label, method, status)
        : route.findSeries(this.#metrics, method, status);
    series.requests.add();
    series.duration.observe(durationMs / 1_000);
    if (!call.isRoutine) this.#metrics.observeUser(status, durationMs);
    span.setName(`${method} ${label}`);
    span.setAttribute("http.request.method", method);
    span.setAttribute("url.path", call.path);
    span.setAttribute("http.route", label);
    span.setAttribute("http.response.status_code", status);
    if (status >= 500) span.setStatus("error", toPlatformError(call.error).code);
    span.end();
    this.#writeLine(call, label, status, durationMs);
  }

  #writeLine(call: Call, route: string, status: number, durationMs: number): void {
    const log = this.#log;
    const isFailure = status >= 500 && call.error !== undefined;
    const level = call.isRoutine && status < 400 ? "debug" : "info";
    if (!isFailure && !log.isOn(level)) return;
    const { traceId, spanId } = call.span.context;
    const fields = {
      trace_id: traceId,
      span_id: spanId,
      method: call.method,
      path: call.path,
      route,
      status,
      duration_ms: durationMs,
    };
    // The stack of a wrong result is that of this package: the route is where its author looks.
    if (isFailure) {
      log.error("request failed", { ...fields, declared_at: call.declaredAt, error: call.error });
    } else log[level]("request", fields);
  }
}
