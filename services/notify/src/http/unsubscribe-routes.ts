// Unsubscribe links: GET shows a page and changes nothing, POST unsubscribes (RFC 8058). Both are open to all holders.
import { PlatformError } from "@platform/kernel/errors";
import {
  bytes,
  createValidationError,
  defineRoute,
  type ApiRoute,
  type Peer,
  type RateLimit,
} from "@platform/kernel/http";
import { ONE_CLICK, PAGE_POLICY, renderPage, type PageState } from "../unsubscribe/page.ts";
import type { Subscription, Unsubscribes } from "../unsubscribe/unsubscribes.ts";

/** Options of the routes. */
export interface UnsubscribeRoutesOptions {
  unsubscribes: Unsubscribes;
  /** Limit of invalid links per peer. Valid ones are not limited, so that nobody can keep others from unsubscribing. */
  invalidRate: RateLimit;
}

const BODY_BYTES_MAX = 4_096;
const STATUSES: Readonly<Record<PageState, number>> = {
  question: 200,
  done: 200,
  invalid: 404,
  busy: 429,
};

interface PageRequest {
  params: Readonly<Record<string, string>>;
  headers: Headers;
  peer: Peer;
}

export function createUnsubscribeRoutes(options: UnsubscribeRoutesOptions): ApiRoute[] {
  const { unsubscribes, invalidRate } = options;
  const operation = {
    tag: "Unsubscribing",
    access: "public",
    path: "/unsubscribe/{token}",
    answer: bytes("text/html"),
    problems: { 404: "The link is not valid (a page)", 429: "Too many invalid links (a page)" },
  } as const;
  // All invalid links get the same answer, whatever is wrong with them.
  const refuse = (request: PageRequest): Response => {
    try {
      invalidRate.take(request.peer.kind === "tcp" ? request.peer.address : "", 1);
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      return respond("busy", request, undefined, error.headers);
    }
    return respond("invalid", request);
  };
  return [
    defineRoute({
      ...operation,
      method: "GET",
      summary: "Page of an unsubscribe link; changes nothing",
      handle: (request) => {
        const subscription = unsubscribes.parse(request.params["token"]!);
        if (subscription === undefined) return refuse(request);
        return respond("question", request, subscription);
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      summary: "Unsubscribe from bulk mail with one click",
      description:
        "The body is `List-Unsubscribe=One-Click`, as `application/x-www-form-urlencoded` or `multipart/form-data` (RFC 8058).",
      bodyKind: "bytes",
      bodyBytesMax: BODY_BYTES_MAX,
      problems: { ...operation.problems, 400: "The body is another one" },
      handle: async (request) => {
        const subscription = unsubscribes.parse(request.params["token"]!);
        if (subscription === undefined) return refuse(request);
        await requireOneClick(request.body, request.headers.get("content-type") ?? "");
        await unsubscribes.apply(subscription);
        return respond("done", request, subscription);
      },
    }),
  ];
}

// Programs that only look at links send no such body (RFC 8058 section 3.2).
async function requireOneClick(body: Uint8Array<ArrayBuffer>, contentType: string): Promise<void> {
  const request = new Response(body, { headers: { "Content-Type": contentType } });
  const form = await request.formData().catch(() => undefined);
  const entries = form === undefined ? [] : [...form.entries()];
  const [name, value] = entries[0] ?? [];
  if (entries.length === 1 && name === ONE_CLICK.name && value === ONE_CLICK.value) return;
  const message = `must be exactly ${ONE_CLICK.name}=${ONE_CLICK.value}, as a form`;
  throw createValidationError([{ in: "body", path: "", message }]);
}

function respond(
  state: PageState,
  { headers }: PageRequest,
  subscription?: Subscription,
  more: Readonly<Record<string, string>> = {},
): Response {
  const page = renderPage({
    state,
    address: subscription?.address,
    acceptLanguage: headers.get("accept-language"),
  });
  return new Response(page, {
    status: STATUSES[state],
    headers: {
      ...more,
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": PAGE_POLICY,
      Vary: "Accept-Language",
    },
  });
}
