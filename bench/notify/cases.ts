// All cases of the mail service, in the order of the report.
import type { BenchCase } from "../harness/case.ts";
import { queue } from "./cases/queue.ts";
import { receive } from "./cases/receive.ts";
import { render } from "./cases/render.ts";
import { send } from "./cases/send.ts";

export const NOTIFY_CASES: readonly BenchCase[] = [send, receive, render, queue];
