// The account pages for sessions and for applications with grants.
import type { ClientGrant } from "../../oauth/authorization/grants.ts";
import type { SessionItem } from "../../session/sessions.ts";
import { showClientLogos } from "../client-logo.ts";
import { button, hidden } from "../form.ts";
import { html, type Html } from "../html.ts";
import { carryCsrf, showAccountPage, type PageServices } from "../page-services.ts";
import { withQuery, type PageResponse, type PageRoute, type SignedInRequest } from "../route.ts";
import { section, showWhen } from "./section.ts";

const SESSIONS_PATH = "/account/sessions";
const APPLICATIONS_PATH = "/account/applications";

export function createAccessRoutes(services: PageServices): PageRoute[] {
  return [...createSessionRoutes(services), ...createApplicationRoutes(services)];
}

function createSessionRoutes(services: PageServices): PageRoute[] {
  const { credentials, sessions } = services;
  return [
    {
      method: "GET",
      path: SESSIONS_PATH,
      access: "signed-in",
      handle: (request) => showSessions(services, request),
    },
    {
      method: "POST",
      path: `${SESSIONS_PATH}/end`,
      access: "signed-in",
      handle: async (request, form) => {
        const { account } = request.user;
        const sid = form.get("id") ?? "";
        if (await credentials.endSession(sid, account.id)) {
          await record(services, request, "session.end", `session:${sid}`);
        }
        return back(SESSIONS_PATH, "session-ended");
      },
    },
    {
      method: "POST",
      path: `${SESSIONS_PATH}/end-others`,
      access: "signed-in",
      handle: async (request) => {
        const { account, session } = request.user;
        for (const { id } of await sessions.list(account.id, session.id)) {
          if (id === session.id) continue;
          await credentials.endSession(id, account.id);
          await record(services, request, "session.end", `session:${id}`);
        }
        return back(SESSIONS_PATH, "sessions-ended");
      },
    },
    {
      method: "POST",
      path: `${SESSIONS_PATH}/end-all`,
      access: "signed-in",
      handle: async (request) => {
        const { account } = request.user;
        await credentials.invalidate(account.id);
        await record(services, request, "session.invalidate", `user:${account.id}`);
        request.cookies.push(services.cookies.format("platform_session", "", 0));
        return back("/sign-in", "signed-out");
      },
    },
  ];
}

function createApplicationRoutes(services: PageServices): PageRoute[] {
  return [
    {
      method: "GET",
      path: APPLICATIONS_PATH,
      access: "signed-in",
      handle: (request) => showApplications(services, request),
    },
    {
      method: "POST",
      path: `${APPLICATIONS_PATH}/revoke`,
      access: "signed-in",
      handle: async (request, form) => {
        const clientId = form.get("client") ?? "";
        if (await services.oauth.grants.revoke(request.user.account.id, clientId)) {
          await record(services, request, "grant.revoke", `client:${clientId}`);
        }
        return back(APPLICATIONS_PATH, "application-revoked");
      },
    },
  ];
}

async function showSessions(
  services: PageServices,
  request: SignedInRequest,
): Promise<PageResponse> {
  const { messages } = request.language;
  const { sessions: words, account } = messages;
  const { user } = request;
  const items = await services.sessions.list(user.account.id, user.session.id);
  const list = html`<ul class="items">
      ${items.map((item) => showSession(request, item))}
    </ul>
    <div class="row">
      ${
        items.length > 1 &&
        html`<form method="post" action="${SESSIONS_PATH}/end-others">
          ${start(request, SESSIONS_PATH)}${button(words.endOthers, { kind: "quiet" })}
        </form>`
      }
      <form method="post" action="${SESSIONS_PATH}/end-all">
        ${start(request, SESSIONS_PATH)}${button(words.endAll, { kind: "danger" })}
      </form>
    </div>`;
  const body = section(words.title, words.text, list);
  return showAccountPage(services, request, "sessions", { title: account.sessions, body });
}

function showSession(request: SignedInRequest, item: SessionItem): Html {
  const { language } = request;
  const { sessions: words } = language.messages;
  return html`<li>
    <div class="text">
      <strong
        >${item.device}${item.current && html`<span class="badge">${words.current}</span>`}</strong
      >
      <span class="soft"
        >${item.ip} · ${showWhen(words.lastSeen, language, item.last_seen_at)},
        ${showWhen(words.since, language, item.created_at)}</span
      >
    </div>
    ${
      !item.current &&
      html`<form method="post" action="${SESSIONS_PATH}/end">
        ${start(request, SESSIONS_PATH)}${hidden({ id: item.id })}${button(words.end, { kind: "danger", label: words.endNamed(item.device) })}
      </form>`
    }
  </li>`;
}

async function showApplications(
  services: PageServices,
  request: SignedInRequest,
): Promise<PageResponse> {
  const { messages } = request.language;
  const { applications: words, account } = messages;
  const items = await services.oauth.grants.list(request.user.account.id);
  const logos = await showClientLogos(
    services,
    items.map(({ client }) => client),
  );
  const list =
    items.length === 0
      ? html`<p>${words.none}</p>`
      : html`<ul class="items">
          ${items.map((item) => showApplication(request, item, logos.get(item.client.id)))}
        </ul>`;
  const body = section(words.title, words.text, list);
  return showAccountPage(services, request, "applications", { title: account.applications, body });
}

function showApplication(
  request: SignedInRequest,
  { client, scopes, grantedAt }: ClientGrant,
  logo: Html | undefined,
): Html {
  const { language } = request;
  const { messages } = language;
  const { applications: words } = messages;
  const names = scopes.map((scope) =>
    Object.hasOwn(messages.scopes, scope) ? messages.scopes[scope] : scope,
  );
  return html`<li>
    ${logo}
    <div class="text">
      <strong>${client.name}</strong>
      <span class="soft"
        >${showWhen(words.since, language, new Date(grantedAt).toISOString())}</span
      >
      <ul class="grants">
        ${names.map((name) => html`<li>${name}</li>`)}
      </ul>
    </div>
    <form method="post" action="${APPLICATIONS_PATH}/revoke">
      ${start(request, APPLICATIONS_PATH)}${hidden({ client: client.id })}${button(words.revoke, { kind: "danger", label: words.revokeNamed(client.name) })}
    </form>
  </li>`;
}

function start(request: SignedInRequest, path: string): Html {
  return html`${carryCsrf(request)}${hidden({ back: path })}`;
}

function back(path: string, done: string): PageResponse {
  return { kind: "redirect", to: withQuery(path, { done }) };
}

async function record(
  { audit }: PageServices,
  request: SignedInRequest,
  action: string,
  target: string,
): Promise<void> {
  const actor = `user:${request.user.account.id}`;
  await audit.record({ action, actor, target, ...request.origin });
}
