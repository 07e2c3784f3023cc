// Types of the answers of all services, by service and operation.
import type { AuthAnswers } from "./auth.ts";
import type { GateAnswers } from "./gate.ts";
import type { NotifyAnswers } from "./notify.ts";
import type { PulseAnswers } from "./pulse.ts";
import type { RuntimeAnswers } from "./runtime.ts";
import type { TunnelAnswers } from "./tunnel.ts";
import type { VaultAnswers } from "./vault.ts";

interface Answers {
  auth: AuthAnswers;
  gate: GateAnswers;
  notify: NotifyAnswers;
  pulse: PulseAnswers;
  runtime: RuntimeAnswers;
  tunnel: TunnelAnswers;
  vault: VaultAnswers;
}

/** Answer of an operation, named by its method and path: `Answer<"auth", "GET /users/{id}">`. */
export type Answer<
  Service extends keyof Answers,
  Operation extends keyof Answers[Service],
> = Answers[Service][Operation];
