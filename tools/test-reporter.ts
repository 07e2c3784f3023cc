// A reporter for the runner: skipped tests with their reasons, failures, and the final counts, one JSON line each.
import { inspect } from "node:util";
import type { TestEvent } from "node:test/reporters";
import type { ReportLine } from "./test-file.ts";

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of source) {
    if (type === "test:pass" && data.skip !== undefined && data.skip !== false) {
      yield write({
        skip: typeof data.skip === "string" ? `${data.name}: ${data.skip}` : data.name,
      });
    }
    if (type === "test:fail" && data.details.type !== "suite") {
      const { error } = data.details;
      yield write({ test: data.name, failure: `${data.name}: ${inspect(error.cause ?? error)}` });
    }
    if (type === "test:summary") {
      const { tests, passed, skipped, todo } = data.counts;
      yield write({ counts: { passed, failed: tests - passed - skipped - todo, skipped } });
    }
  }
}

function write(line: ReportLine): string {
  return `${JSON.stringify(line)}\n`;
}
