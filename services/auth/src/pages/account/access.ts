// Who is in: the devices that are signed in, and the applications that were allowed something.
import type { ClientGrant } from "../../oauth/authorization/grants.ts";
import type { SessionItem } from "../../session/sessions.ts";
import { button, hidden } from "../form.ts";
import { html, type Html } from "../html.ts";
import { carryCsrf, showAccountPage, type PageParts } from "../page-parts.ts";
import { withQuery, type Answer, type PageRoute, type SignedInVisit } from "../route.ts";

const SESSIONS_PATH = "/account/sessions";
const APPLICATIONS_PATH = "/account/applications";

/** The routes. */
export function createAccessRoutes(parts: PageParts): PageRoute[] {
  return [...createSessionRoutes(parts), ...createApplicationRoutes(parts)];
}

function createSessionRoutes(parts: PageParts): PageRoute[] {
  const { credentials, sessions } = parts;
  return [
    {
      method: "GET",
      path: SESSIONS_PATH,
      access: "signed-in",
      handle: (visit) => showSessions(parts, visit),
    },
    {
      method: "POST",
      path: `${SESSIONS_PATH}/end`,
      access: "signed-in",
      handle: async (visit, form) => {
        const { account } = visit.visitor;
        const sid = form.get("id") ?? "";
        if (await credentials.endSession(sid, account.id)) {
          await record(parts, visit, "session.end", `session:${sid}`);
        }
        return back(SESSIONS_PATH, "session-ended");
      },
    },
    {
      method: "POST",
      path: `${SESSIONS_PATH}/end-others`,
      access: "signed-in",
      handle: async (visit) => {
        const { account, session } = visit.visitor;
        for (const { id } of await sessions.list(account.id, session.id)) {
          if (id === session.id) continue;
          await credentials.endSession(id, account.id);
          await record(parts, visit, "session.end", `session:${id}`);
        }
        return back(SESSIONS_PATH, "sessions-ended");
      },
    },
    {
      method: "POST",
      path: `${SESSIONS_PATH}/end-all`,
      access: "signed-in",
      handle: async (visit) => {
        const { account } = visit.visitor;
        await credentials.invalidate(account.id);
        await record(parts, visit, "session.invalidate", `user:${account.id}`);
        visit.cookies.push(parts.cookies.format("platform_session", "", 0));
        return back("/sign-in", "signed-out");
      },
    },
  ];
}

function createApplicationRoutes(parts: PageParts): PageRoute[] {
  return [
    {
      method: "GET",
      path: APPLICATIONS_PATH,
      access: "signed-in",
      handle: (visit) => showApplications(parts, visit),
    },
    {
      method: "POST",
      path: `${APPLICATIONS_PATH}/revoke`,
      access: "signed-in",
      handle: async (visit, form) => {
        const clientId = form.get("client") ?? "";
        if (await parts.oauth.grants.revoke(visit.visitor.account.id, clientId)) {
          await record(parts, visit, "grant.revoke", `client:${clientId}`);
        }
        return back(APPLICATIONS_PATH, "application-revoked");
      },
    },
  ];
}

async function showSessions(parts: PageParts, visit: SignedInVisit): Promise<Answer> {
  const { messages } = visit.language;
  const { sessions: words, account } = messages;
  const { visitor } = visit;
  const items = await parts.sessions.list(visitor.account.id, visitor.session.id);
  const body = html`<section class="card">
    <h2>${words.title}</h2>
    <ul class="items">
      ${items.map((item) => showSession(visit, item))}
    </ul>
    <div class="row">
      ${
        items.length > 1 &&
        html`<form method="post" action="${SESSIONS_PATH}/end-others">
          ${start(visit, SESSIONS_PATH)}${button(words.endOthers, { kind: "quiet" })}
        </form>`
      }
      <form method="post" action="${SESSIONS_PATH}/end-all">
        ${start(visit, SESSIONS_PATH)}${button(words.endAll, { kind: "danger" })}
      </form>
    </div>
  </section>`;
  return showAccountPage(parts, visit, "sessions", { title: account.sessions, body });
}

function showSession(visit: SignedInVisit, item: SessionItem): Html {
  const { messages, formatTime } = visit.language;
  const { sessions: words } = messages;
  return html`<li>
    <div class="text">
      <strong
        >${item.device}${item.current && html`<span class="badge">${words.current}</span>`}</strong
      >
      <span class="soft"
        >${item.ip} · ${words.lastSeen(formatTime(item.last_seen_at))},
        ${words.since(formatTime(item.created_at))}</span
      >
    </div>
    ${
      !item.current &&
      html`<form method="post" action="${SESSIONS_PATH}/end">
        ${start(visit, SESSIONS_PATH)}${hidden({ id: item.id })}${button(words.end, { kind: "danger", label: words.endNamed(item.device) })}
      </form>`
    }
  </li>`;
}

async function showApplications(parts: PageParts, visit: SignedInVisit): Promise<Answer> {
  const { messages } = visit.language;
  const { applications: words, account } = messages;
  const items = await parts.oauth.grants.list(visit.visitor.account.id);
  const body = html`<section class="card">
    <h2>${words.title}</h2>
    ${
      items.length === 0
        ? html`<p>${words.none}</p>`
        : html`<ul class="items">
            ${items.map((item) => showApplication(visit, item))}
          </ul>`
    }
  </section>`;
  return showAccountPage(parts, visit, "applications", { title: account.applications, body });
}

function showApplication(visit: SignedInVisit, { client, scopes, grantedAt }: ClientGrant): Html {
  const { messages, formatTime } = visit.language;
  const { applications: words } = messages;
  const names = scopes.map((scope) =>
    Object.hasOwn(messages.scopes, scope) ? messages.scopes[scope] : scope,
  );
  return html`<li>
    <div class="text">
      <strong>${client.name}</strong>
      <span class="soft">${words.since(formatTime(new Date(grantedAt).toISOString()))}</span>
      <ul class="grants">
        ${names.map((name) => html`<li>${name}</li>`)}
      </ul>
    </div>
    <form method="post" action="${APPLICATIONS_PATH}/revoke">
      ${start(visit, APPLICATIONS_PATH)}${hidden({ client: client.id })}${button(words.revoke, { kind: "danger", label: words.revokeNamed(client.name) })}
    </form>
  </li>`;
}

function start(visit: SignedInVisit, path: string): Html {
  return html`${carryCsrf(visit)}${hidden({ back: path })}`;
}

function back(path: string, done: string): Answer {
  return { kind: "redirect", to: withQuery(path, { done }) };
}

async function record(
  { audit }: PageParts,
  visit: SignedInVisit,
  action: string,
  target: string,
): Promise<void> {
  const actor = `user:${visit.visitor.account.id}`;
  await audit.record({ action, actor, target, ip: visit.origin.ip });
}
