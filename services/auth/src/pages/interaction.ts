// Authorizations of applications: account selection, sign-in and consent.
import type { Interaction, InteractionOutcome } from "../oauth/authorization/interaction.ts";
import { reachesAcr } from "../oauth/authorization/prompt-policy.ts";
import { OPENID_SCOPES, USE_SCOPE } from "../rbac/rights.ts";
import { showClientLogos } from "./client-logo.ts";
import { button, hidden } from "./form.ts";
import { html, type Html } from "./html.ts";
import { chooseLanguage, findLanguage } from "./language/language.ts";
import type { PageRequest, CurrentUser } from "./page-request.ts";
import { carryCsrf, goOn, showPage, type PageServices } from "./page-services.ts";
import { withQuery, type PageResponse, type Form, type PageRoute } from "./route.ts";
import { showSignIn } from "./sign-in.ts";

/** The application requires another user than the current one. */
const OTHER_REASONS = new Set(["id_token_hint", "claims_id_token_sub_value"]);
/** Maximum duration of an interaction. */
const LANGUAGE_MS = 3_600_000;
/** An existing sign-in satisfies these reasons; all others require a new one. */
const SILENT_REASONS = new Set(["no_session", "session_ended", "acr_values", "second_factor"]);

export function createInteractionRoutes(services: PageServices): PageRoute[] {
  const path = "/interaction/{id}";
  return [
    { method: "GET", path, access: "public", handle: (request) => show(services, request) },
    {
      method: "POST",
      path,
      access: "public",
      handle: (request, form) => decide(services, request, form),
    },
    {
      method: "GET",
      path: "/device",
      access: "public",
      handle: (request) => ({
        kind: "redirect",
        to: withQuery("/api/v1/auth/device", {
          user_code: request.query.get("user_code")?.slice(0, 32),
        }),
      }),
    },
  ];
}

async function show(services: PageServices, arrived: PageRequest): Promise<PageResponse> {
  const interaction = await find(services, arrived);
  if (interaction === undefined) return services.errors.showExpired(arrived.language);
  const request = adoptLanguage(services, arrived, interaction);
  if (interaction.prompt === "consent") return showConsent(services, request, interaction);
  const { user } = request;
  const isNew = user !== undefined && user.session.authTime >= interaction.startedAt;
  const isForOther = !isNew && interaction.reasons.some((reason) => OTHER_REASONS.has(reason));
  if (user === undefined || isForOther) {
    return showSignIn(services, request, {
      target: request.path,
      username: interaction.loginHint,
      client: interaction.client.name,
    });
  }
  if (interaction.prompt === "select_account") {
    return isNew
      ? { kind: "redirect", to: await finish(services, request, select(user)) }
      : showSelection(services, request, user, interaction);
  }
  const lack = await findLack(services, user, interaction);
  if (lack?.level === "2" && user.session.acr === "2") {
    // Two factors are the maximum: the application would ask forever.
    return { kind: "redirect", to: await finish(services, request, { kind: "denied" }) };
  }
  if (lack !== undefined) {
    return {
      kind: "redirect",
      to: withQuery("/confirm", { continue: request.path, level: lack.level }),
    };
  }
  const to = await finish(services, request, { kind: "login", session: user.session });
  return { kind: "redirect", to };
}

// Pages of an authorization are in the language that the application requested.
function adoptLanguage(
  { cookies }: PageServices,
  request: PageRequest,
  { uiLocales }: Interaction,
): PageRequest {
  const asked = findLanguage(uiLocales ?? "");
  const language = asked ?? chooseLanguage(request.incoming.headers["accept-language"]);
  if (language === request.language) return request;
  const [tag, ms] = asked === undefined ? ["", 0] : [asked.tag, LANGUAGE_MS];
  request.cookies.push(cookies.format("platform_language", tag, ms));
  return { ...request, language };
}

function select({ session }: CurrentUser): InteractionOutcome {
  return { kind: "selected", session };
}

function showSelection(
  services: PageServices,
  request: PageRequest,
  { account }: CurrentUser,
  { client }: Interaction,
): PageResponse {
  const { messages } = request.language;
  const { selection: words, confirm } = messages;
  const other = withQuery("/sign-in", { continue: request.path, as: "other" });
  const body = html`<form method="post" action="${request.path}">
      ${carryCsrf(request)}
      <div class="row">
        ${button(words.goOnAs(account.username), { name: "decision", value: "select" })}<a
          class="button quiet"
          href="${other}"
          >${confirm.otherAccount}</a
        >
      </div>
    </form>
    <div class="below">
      <form method="post" action="${request.path}">
        ${carryCsrf(request)}${button(messages.cancel, { kind: "link", name: "decision", value: "deny" })}
      </form>
    </div>`;
  return showPage(services, request, { title: words.title(client.name), body });
}

// The missing requirement of the user's session for this request; `undefined` if the session is sufficient.
async function findLack(
  { policies }: PageServices,
  { account, session }: CurrentUser,
  { reasons, startedAt, acrValues, client }: Interaction,
): Promise<{ level: string | undefined } | undefined> {
  const needsSecond =
    (acrValues !== undefined && acrValues !== "" && !reachesAcr(acrValues, session.acr)) ||
    (session.acr !== "2" && (await policies.requires(account.id, client.id)));
  if (needsSecond) return { level: "2" };
  const isNew = session.authTime >= startedAt;
  return isNew || reasons.every((reason) => SILENT_REASONS.has(reason))
    ? undefined
    : { level: undefined };
}

async function showConsent(
  services: PageServices,
  request: PageRequest,
  interaction: Interaction,
): Promise<PageResponse> {
  if (interaction.isAgreed) {
    return {
      kind: "redirect",
      to: await finish(services, request, { kind: "consent", isAsked: false }),
    };
  }
  const account = await services.users.find(interaction.accountId ?? "");
  if (account === undefined) return services.errors.showExpired(request.language);
  const { messages } = request.language;
  const { consent: words } = messages;
  const { client, scopes, actingRoles, redirectUri } = interaction;
  const isIdentity = (scope: string): boolean => OPENID_SCOPES.includes(scope);
  const known = { ...messages.scopes, [USE_SCOPE]: words.use(actingRoles) };
  const identity = await describeScopes(services, known, scopes.filter(isIdentity));
  const platform = await describeScopes(
    services,
    known,
    scopes.filter((scope) => !isIdentity(scope)),
  );
  const host = redirectUri === undefined ? "" : (URL.parse(redirectUri)?.host ?? "");
  const links = [
    [words.website, client.uri],
    [words.policy, client.policyUri],
    [words.terms, client.tosUri],
  ] as const;
  const logo = (await showClientLogos(services, [client])).get(client.id);
  const body = html`<div class="lead">
      ${logo}
      <p>${words.text(client.name, account.username)}</p>
    </div>
    ${identity.length + platform.length === 0 && html`<p>${words.nothing}</p>`}
    ${listGrants(words.list, identity)} ${listGrants(words.platform(account.username), platform)}
    <form method="post" action="${request.path}">
      ${carryCsrf(request)}${hidden({ shown: fingerprint(interaction) })}
      <div class="row">
        ${button(words.allow, { name: "decision", value: "allow" })}${button(words.deny, { kind: "quiet", name: "decision", value: "deny" })}
      </div>
    </form>
    <div class="below">
      <p class="hint">${host !== "" && `${words.returnTo(host)} `}${words.note}</p>
      ${links.some(([, url]) => isWeb(url)) && html`<p class="hint">${links.map(([text, url]) => isWeb(url) && showLink(text, url!))}</p>`}
    </div>`;
  return showPage(services, request, { title: words.title(client.name), body });
}

async function decide(
  services: PageServices,
  request: PageRequest,
  form: Form,
): Promise<PageResponse> {
  const interaction = await find(services, request);
  if (interaction === undefined) return services.errors.showExpired(request.language);
  const decision = form.get("decision");
  if (decision === "deny")
    return goOn(services, request, await finish(services, request, { kind: "denied" }));
  if (
    decision === "select" &&
    interaction.prompt === "select_account" &&
    request.user !== undefined
  )
    return goOn(services, request, await finish(services, request, select(request.user)));
  const isShown =
    interaction.prompt === "consent" && form.get("shown") === fingerprint(interaction);
  // The user must have consented to what the page showed, with the account that it showed.
  if (decision !== "allow" || !isShown) return { kind: "redirect", to: request.path };
  return goOn(
    services,
    request,
    await finish(services, request, { kind: "consent", isAsked: true }),
  );
}

async function find(
  services: PageServices,
  request: PageRequest,
): Promise<Interaction | undefined> {
  const interaction = await services.oauth.interactions.find(request.incoming, request.outgoing);
  return `/interaction/${interaction?.uid}` === request.path ? interaction : undefined;
}

function finish(
  services: PageServices,
  request: PageRequest,
  outcome: InteractionOutcome,
): Promise<string> {
  return services.oauth.interactions.finish(request.incoming, request.outgoing, outcome);
}

async function describeScopes(
  { rbac }: PageServices,
  known: Readonly<Record<string, string>>,
  scopes: readonly string[],
): Promise<string[]> {
  const own = new Map((await rbac.listScopes()).map((scope) => [scope.name, scope.description]));
  return scopes.map((name) => {
    if (Object.hasOwn(known, name)) return known[name]!;
    const description = own.get(name) ?? "";
    return description === "" ? name : description;
  });
}

function listGrants(title: string, texts: readonly string[]): Html | false {
  if (texts.length === 0) return false;
  return html`<p><strong>${title}</strong></p>
    <ul class="grants">
      ${texts.map((text) => html`<li>${text}</li>`)}
    </ul>`;
}

function fingerprint({ accountId, scopes, actingRoles }: Interaction): string {
  return [accountId ?? "", ...scopes, ...actingRoles].join(" ");
}

function isWeb(url: string | undefined): boolean {
  return /^https?:\/\//.test(url ?? "");
}

function showLink(text: string, url: string): Html {
  return html`<a href="${url}" rel="noreferrer noopener">${text}</a> `;
}
