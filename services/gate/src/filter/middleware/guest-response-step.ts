// The step of WebAssembly guests that responses pass: `handle_response`.
import type { ContentFilter, ResponseDraft } from "@platform/http1";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { RouteSpec } from "../../shared-state/index.ts";

/** Passes responses by the guests that their requests have. */
export function createGuestResponseStep({ steps: { guests } }: RouteSpec): Step | undefined {
  const hasResponse = guests?.response !== undefined || guests?.split !== undefined;
  return hasResponse ? new GuestResponseStep() : undefined;
}

/** See {@link createGuestResponseStep}. */
export class GuestResponseStep implements Step {
  run(): boolean {
    return true;
  }

  filterResponse({ userData }: GateExchange, draft: ResponseDraft): readonly ContentFilter[] {
    return userData.guests?.filterResponse(draft) ?? [];
  }
}
