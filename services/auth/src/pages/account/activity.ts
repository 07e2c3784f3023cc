// The activity page: events of the user's account, for users who suspect that someone else uses it.
import { z } from "zod";
import type { AuditRow } from "@platform/kernel/audit";
import { networkOf } from "../../guard/network.ts";
import { button, hidden } from "../form.ts";
import { html, type Html, type Part } from "../html.ts";
import type { Messages } from "../language/en.ts";
import { carryCsrf, showAccountPage, type PageServices } from "../page-services.ts";
import { withQuery, type PageResponse, type PageRoute, type SignedInRequest } from "../route.ts";
import { section, showTime } from "./section.ts";

const PATH = "/account/activity";
const EVENTS_PER_PAGE = 25;
const SEQUENCE_NUMBER = /^\d{1,15}$/;

const detail = z.object({
  device: z.string().optional().catch(undefined),
  method: z.string().optional().catch(undefined),
  amr: z.array(z.string()).optional().catch(undefined),
});

export function createActivityRoutes(services: PageServices): PageRoute[] {
  return [
    {
      method: "GET",
      path: PATH,
      access: "signed-in",
      handle: (request) => show(services, request),
    },
  ];
}

async function show(services: PageServices, request: SignedInRequest): Promise<PageResponse> {
  const { messages } = request.language;
  const { activity: words, account } = messages;
  const subject = `user:${request.user.account.id}`;
  const asked = request.query.get("before") ?? "";
  const before = SEQUENCE_NUMBER.test(asked) ? Number(asked) : undefined;
  const found = await services.audit.listOf(subject, before, EVENTS_PER_PAGE + 1);
  const rows = found.slice(0, EVENTS_PER_PAGE);
  const oldest = found.length > rows.length ? rows.at(-1)?.seq : undefined;
  const list =
    rows.length === 0
      ? html`<p>${words.none}</p>`
      : html`<ul class="items">
          ${rows.map((row) => showEvent(request, row, subject))}
        </ul>`;
  const pages = html`<p class="row">
    ${before !== undefined && html`<a href="${PATH}">${words.newest}</a>`}
    ${oldest !== undefined && html`<a href="${withQuery(PATH, { before: String(oldest) })}">${words.older}</a>`}
  </p>`;
  const isPaged = before !== undefined || oldest !== undefined;
  const body = html`${section(words.title, words.text, html`${list}${isPaged && pages}`)}${section(
    words.unknownTitle,
    words.unknownText,
    offerHelp(request),
  )}`;
  return showAccountPage(services, request, "activity", { title: account.activity, body });
}

function offerHelp(request: SignedInRequest): Html {
  const { activity: words, sessions } = request.language.messages;
  return html`<div class="row">
    <a class="button" href="/account/security">${words.changePassword}</a>
    <form method="post" action="/account/sessions/end-others">
      ${carryCsrf(request)}${hidden({ back: PATH })}${button(sessions.endOthers, { kind: "danger" })}
    </form>
  </div>`;
}

function showEvent({ language }: SignedInRequest, row: AuditRow, subject: string): Html {
  const { activity: words } = language.messages;
  const { device, method, amr } = detail.catch({}).parse(readJson(row.detail));
  const isOther = row.actor !== subject && row.actor !== "anonymous";
  const methods = nameMethods(words.methods, amr ?? (method === undefined ? [] : [method]));
  // Address and device of others, such as administrators, are theirs.
  const facts: Part[] = [
    showTime(language, new Date(row.at).toISOString()),
    methods,
    isOther ? words.byOther : device,
    !isOther && row.ip !== "" && networkOf(row.ip),
  ];
  return html`<li>
    <div class="text">
      <strong${row.outcome === "failure" && html` class="failed"`}>${nameEvent(words, row)}</strong>
      <span class="soft">${joinFacts(facts)}</span>
    </div>
  </li>`;
}

function nameEvent(words: Messages["activity"], { action, outcome }: AuditRow): string {
  const name = outcome === "failure" ? `${action}.failure` : action;
  return Object.hasOwn(words.events, name) ? words.events[name]! : name;
}

// Methods of RFC 8176, and `method` of failures.
function nameMethods(
  words: Messages["activity"]["methods"],
  methods: readonly string[],
): string | undefined {
  const has = (...names: string[]): boolean => names.some((name) => methods.includes(name));
  if (has("hwk", "swk", "passkey")) return words.passkey;
  if (has("code")) return words.code;
  if (has("pwd", "password")) return has("mfa") ? words.both : words.password;
  return undefined;
}

function joinFacts(facts: readonly Part[]): Part {
  return facts
    .filter((fact) => fact !== undefined && fact !== false)
    .map((fact, index) => html`${index > 0 && " · "}${fact}`);
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
